"""Formats text in columns, each as wide as its longest text, with two blanks in between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

WIDTH: Final = 100
"""The most characters of a printed line."""
_GAP: Final = "  "


def columns(rows: Sequence[Sequence[str]], *, right: Iterable[int] = ()) -> list[str]:
    """Returns a line for each row, without blanks at its end; in too wide tables the first column has its own lines."""
    lines = _aligned(rows, frozenset(right))
    if max(map(len, lines), default=0) <= WIDTH:
        return lines
    rest = _aligned([("", *row[1:]) for row in rows], frozenset(right))
    return [line for row, below in zip(rows, rest, strict=True) for line in (row[0], _GAP + below.lstrip(" "))]


def _aligned(rows: Sequence[Sequence[str]], right: frozenset[int]) -> list[str]:
    widths = [max(map(len, cells)) for cells in zip_longest(*rows, fillvalue="")]
    return [
        _GAP.join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip(" ")
        for row in rows
    ]
