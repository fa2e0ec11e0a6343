"""Output for terminals: colour where it is supported, and lines of at most 100 columns."""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from enum import Enum
from typing import TextIO

from halfcard.columns import WIDTH


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
