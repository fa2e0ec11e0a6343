"""Repeats one call from several threads while a test causes faults."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from devcluster.control_plane.client import ApiResponse
from devcluster.waiting import wait_until

_THREADS = 3


class Hammer:
    """A context manager that repeats a call; `answers` are in order of arrival, and complete after its end."""

    def __init__(self, call: Callable[[], ApiResponse], *, threads: int = _THREADS) -> None:
        self._call = call
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._strike) for _ in range(threads)]
        self.answers: list[ApiResponse] = []

    def _strike(self) -> None:
        while not self._stopping.is_set():
            self.answers.append(self._call())

    def wait_for(self, more: int) -> None:
        wanted = len(self.answers) + more
        wait_until(lambda: len(self.answers) >= wanted, what=f"{more} more calls")

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
