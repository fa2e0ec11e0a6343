"""A stand-in for a machine's driver, which the real `pynvml` finds in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from deviceplugin.gpus.nvml import Nvml
from tests.nvml.build import LIBRARY, library_folder
from tests.nvml.stand_in import VARIABLE, StandIn, stand_in_cards

Opened = Callable[..., Nvml]


@pytest.fixture(scope="session")
def _library() -> ctypes.CDLL:
    """Loads the library by its path, so that it is found by name: LD_LIBRARY_PATH is read when a process starts."""
    return ctypes.CDLL(str(library_folder() / LIBRARY))


@pytest.fixture
def driver(_library: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """The driver of a machine with two cards."""
    stand_in = StandIn(tmp_path, stand_in_cards(2))
    monkeypatch.setenv(VARIABLE, stand_in.environment[VARIABLE])
    return stand_in


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens the driver, and does not wait for cards with errors."""
    with ExitStack() as stack:
        yield lambda sysfs=tmp_path: stack.enter_context(closing(Nvml(sysfs, patience_s=0)))
