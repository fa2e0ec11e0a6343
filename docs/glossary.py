"""Reads the glossary, which is the docstring of the package `halfcard`, into tables for the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import halfcard
from docs.tables import cell, table

_ENTRY: Final = re.compile(r"(?P<term>[a-z][a-z ]*?) {2,}(?P<meaning>.+)")


class Section(NamedTuple):
    """One group of terms, such as those of quota."""

    title: str
    terms: tuple[tuple[str, str], ...]


def sections() -> list[Section]:
    """Every group of the docstring: a title alone on a line, a blank line, and one term on each line after that."""
    paragraphs = (halfcard.__doc__ or "").strip().split("\n\n")
    starts = [number for number, text in enumerate(paragraphs) if re.fullmatch(r"[A-Z][a-z ]+", text)]
    return [Section(paragraphs[at], tuple(_terms(paragraphs[at + 1]))) for at in starts]


def _terms(paragraph: str) -> Iterator[tuple[str, str]]:
    for line in paragraph.splitlines():
        found = _ENTRY.fullmatch(line)
        if found is None:
            raise ValueError(
                f"halfcard/__init__.py: {line!r} is not a term with its meaning; write: term, two spaces, meaning"
            )
        yield found["term"], found["meaning"].replace("(`", "(`halfcard/")


def tables() -> str:
    """Returns a table of terms for each group."""
    return "\n\n".join(
        f"### {title}\n\n{table(('term', 'meaning'), [(f'**{term}**', cell(meaning)) for term, meaning in terms])}"
        for title, terms in sections()
    )
