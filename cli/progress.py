"""Prints the progress of a long command: after two seconds, a line on standard error now and then."""

from __future__ import annotations

import threading
from typing import Final, Self, TextIO

_EVERY_S: Final = 2.0


class Progress:
    """Repeats the last message until a new one comes."""

    def __init__(self, stream: TextIO, command: str) -> None:
        self._stream = stream
        self._command = command
        self._last = ""
        self._ended = threading.Event()
        self._reporter = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> Self:
        self._reporter.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._reporter.join()

    def say(self, what: str) -> None:
        self._last = what

    def _report(self) -> None:
        while not self._ended.wait(_EVERY_S):
            self._stream.write(f"{self._command}: {self._last}\n")
            self._stream.flush()
