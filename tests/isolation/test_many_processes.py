"""Hundreds of processes of one container use a card at once; one more than its account has rows for gets an error."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from halfcard.isolation.shared_files import MOST_PROCESSES

from .build import build
from .node import Driver, share

AT_ONCE: Final = 300
MOST_RATIO: Final = 2
ROUNDS: Final = 5


class Crowd:
    """Starts many programs over a driver that does nothing: all time is that of their start and of the library."""

    def __init__(self, folder: Path) -> None:
        self._driver = Driver(folder / "halfcard")
        self.bare = self._driver.folder / "driver" / "libcuda.so.1"
        build(folder / "nothing.so", ["nothing.c"], "-O2", "-Wl,-soname,libcuda.so.1").rename(self.bare)
        self.held = self._driver.library
        self._many = build(folder / "many", ["many.c"], "-O2")

    def run(self, processes: int, library: Path) -> dict[str, int]:
        """Runs them in a new container."""
        self._driver.container(share(0, memory_mib=2 * MOST_PROCESSES))
        done = subprocess.run(
            [str(self._many), str(processes), str(library)], capture_output=True, text=True, check=True
        )
        words = done.stdout.split()
        return dict(zip(words[::2], map(int, words[1::2]), strict=True))


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    return Crowd(tmp_path_factory.mktemp("many"))


def test_300_processes_at_once_take_at_most_twice_as_long_as_without_the_library(crowd: Crowd) -> None:
    both = (crowd.held, crowd.bare)
    held, bare = (min(times) for times in zip(*(_times_us(crowd, both) for _ in range(ROUNDS)), strict=True))
    assert held <= MOST_RATIO * bare


def _times_us(crowd: Crowd, libraries: Iterable[Path]) -> list[int]:
    return [crowd.run(AT_ONCE, library)["us"] for library in libraries]


def test_a_process_without_a_row_is_refused_and_the_others_are_not(crowd: Crowd) -> None:
    found = crowd.run(MOST_PROCESSES + 3, crowd.held)
    assert (found["got"], found["refused"]) == (MOST_PROCESSES, 3)
