"""Writes tables as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def code(text: object) -> str:
    return f"`{text}`"


def cell(text: str) -> str:
    """Returns the text on one line, with the character that would end the cell escaped."""
    return " ".join(text.split()).replace("|", "\\|")
