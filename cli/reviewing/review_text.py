"""Prints the result of a review for people: objects on standard output, what cannot be read on standard error."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from halfcard.columns import WIDTH

from ..judge import Item, differences
from ..output.terminal import Colour, Screen, counted
from .review_report import ReviewReport

_MARKS: Final = {"+": Colour.GREEN, "-": Colour.RED, "~": Colour.YELLOW}
_WORDS: Final[Mapping[bool | None, tuple[str, Colour]]] = {
    True: ("allowed", Colour.GREEN),
    False: ("refused", Colour.RED),
    None: ("not judged", Colour.YELLOW),
}


def print_text(report: ReviewReport, *, totals: bool) -> None:
    screen = Screen.on(sys.stdout)
    for document, item in report.reviewed:
        _print_item(screen, item, f"{document.source_file}:{document.line}")
    for skipped in report.skipped:
        screen.line(screen.paint(f"skipped  {skipped.file}: {skipped.what}", Colour.DIM))
    if totals:
        screen.line(_totals(report))
    for error in report.errors:
        print(f"halfcard review: {error}", file=sys.stderr)


def _print_item(screen: Screen, item: Item, source: str) -> None:
    word, colour = _WORDS[item.allowed]
    title = f"{item.kind} {item.title}".rstrip()
    separator = "  " if len(f"{word}  {title}  {source}") <= WIDTH else "\n    "
    place = screen.paint(f"{separator}{source}", Colour.DIM)
    screen.line(f"{screen.paint(word, colour)}  {screen.paint(title, Colour.BOLD)}{place}")
    if item.not_judged is not None:
        screen.wrapped(item.not_judged, indent="    ", hanging="  ")
    for text in item.verdict.warnings:
        screen.wrapped(f"Warning: {text}", indent="    ", hanging="         ", colour=Colour.YELLOW)
    for problem in item.verdict.problems:
        screen.wrapped(str(problem), indent="    ", hanging="  ")
    for difference in differences(item.obj, item.verdict.changes):
        screen.wrapped(difference, indent="    ", hanging="  ", colour=_MARKS[difference[0]])


def _totals(report: ReviewReport) -> str:
    verdicts = [each.item.allowed for each in report.reviewed]
    parts = [counted(len(verdicts), "object"), f"{verdicts.count(True)} allowed", f"{verdicts.count(False)} refused"]
    parts += [f"{verdicts.count(None)} not judged"] if None in verdicts else []
    parts += [f"{len(report.errors)} unreadable"] if report.errors else []
    return ", ".join(parts)
