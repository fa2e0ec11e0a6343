"""A separate process finds the library by LD_LIBRARY_PATH as the agent does, also when it is installed later."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.nvml.build import LIBRARY, compiler, library_folder
from tests.nvml.stand_in import StandIn, stand_in_cards

_PROGRAM: Final = """
import sys
from pathlib import Path
from deviceplugin.gpus.nvml import Nvml
from deviceplugin.gpus.interface import GpusError
nvml = Nvml()
for _ in sys.stdin:
    try:
        cards = len(nvml.read())
        mapped = {line.split()[-1] for line in Path("/proc/self/maps").open() if "libnvidia-ml" in line}
        print(cards, "cards by", *mapped, flush=True)
    except GpusError as error:
        print(error, flush=True)
"""


class Program:
    """Reads the cards at each request of the test."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def read(self) -> str:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        return self.process.stdout.readline()


@pytest.fixture
def driver(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path, stand_in_cards(3))


@pytest.fixture
def program(driver: StandIn, tmp_path: Path) -> Iterator[Program]:
    """A program that searches the library in the folder `libraries`, which is empty."""
    folder = tmp_path / "libraries"
    folder.mkdir()
    started = Program({**driver.environment, "LD_LIBRARY_PATH": str(folder)})
    with started.process:
        yield started


def _install(driver_folder: Path) -> Path:
    driver_folder.mkdir()
    library = shutil.copy(library_folder() / LIBRARY, driver_folder)
    link = driver_folder.parent / "libraries" / LIBRARY
    link.unlink(missing_ok=True)
    link.symlink_to(library)
    return driver_folder / LIBRARY


def test_a_library_that_is_missing_at_first_is_found_when_it_appears(program: Program, tmp_path: Path) -> None:
    assert "libnvidia-ml.so.1 is not found: install NVIDIA's driver" in program.read()
    there = _install(tmp_path / "580")
    assert program.read() == f"3 cards by {there}\n"


def test_a_driver_that_is_replaced_brings_its_own_library(program: Program, driver: StandIn, tmp_path: Path) -> None:
    older = _install(tmp_path / "570")
    assert program.read() == f"3 cards by {older}\n"
    driver.unload()
    assert "not loaded" in program.read()
    newer = _install(tmp_path / "580")
    driver.reload()
    assert program.read() == f"3 cards by {newer}\n"


def test_without_a_compiler_one_from_pypi_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = tmp_path / "halfcard" / "cluster-tools" / "ziglang-0.17.0"
    kept.mkdir(parents=True)
    assert compiler() == [str(kept / "zig"), "cc"]
