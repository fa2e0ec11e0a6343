"""Output for terminals: colour where it is supported, lines of at most 100 columns, and the progress of a command."""

from __future__ import annotations

import os
import textwrap
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Self, TextIO

from halfcard.columns import WIDTH, columns

_EVERY_S: Final = 2.0


class Colour(Enum):
    RED = "31"
    GREEN = "32"
    YELLOW = "33"
    BLUE = "36"
    DIM = "2"
    BOLD = "1"


@dataclass(frozen=True, slots=True)
class Screen:
    stream: TextIO
    coloured: bool

    @classmethod
    def on(cls, stream: TextIO) -> Screen:
        """Returns the screen for a stream; NO_COLOR switches colour off, as no-color.org defines."""
        return cls(stream, stream.isatty() and "NO_COLOR" not in os.environ)

    @property
    def is_terminal(self) -> bool:
        return self.stream.isatty()

    def paint(self, text: str, colour: Colour) -> str:
        return f"\x1b[{colour.value}m{text}\x1b[0m" if self.coloured else text

    def line(self, text: str = "") -> None:
        self.stream.write(text + "\n")

    def wrapped(self, text: str, *, indent: str, hanging: str = "", colour: Colour | None = None) -> None:
        """Prints wrapped text; long words (field paths) are never broken, because users copy them."""
        lines = textwrap.wrap(
            text,
            WIDTH,
            initial_indent=indent,
            subsequent_indent=indent + hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for each in lines:
            self.line(self.paint(each, colour) if colour else each)

    def table(self, rows: Sequence[Sequence[str]], *, right: Iterable[int] = (), indent: str = "") -> None:
        for line in columns(rows, right=right):
            self.line(f"{indent}{line}")

    def headed_table(self, rows: Sequence[Sequence[str]], *, right: Iterable[int] = ()) -> None:
        """Prints a table whose first row is its heading."""
        heads, *lines = columns(rows, right=right)
        self.line(self.paint(heads, Colour.BOLD))
        for line in lines:
            self.line(line)


class Progress:
    """Prints the progress of a long command: its last message, every two seconds, on standard error."""

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


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
