"""Parses YAML text into plain data as kubectl understands it, and strictly where kubectl is lax.

Invariant: work and memory are bounded by the length of the text. Aliases cannot multiply it, nesting cannot exhaust the
stack, and no key appears twice.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from halfcard.problems import printable

from .manifest_error import ManifestError
from .yaml_scalars import plain

MAX_DEPTH: Final = 100
"""Deeper than any Kubernetes object, and shallow enough for recursive functions."""

MAX_ALIASED: Final = 10_000_000
"""The most characters that the aliases of a document may expand to."""

Event = Any
"""One of yaml.events, whose type stubs lack the fields."""

_TAG: Final = "tag:yaml.org,2002:"
_RESOLVED_TAGS: Final = frozenset(_TAG + kind for kind in ("bool", "int", "float", "null", "timestamp"))
_BINARY: Final = _TAG + "binary"
_UNPRINTABLE: Final = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Lines = Mapping[int, Sequence[int]]
"""The lines where the elements of each list and the members of each mapping begin, by its identity; without mappings
that merge others.
"""


@dataclass(frozen=True, slots=True)
class Parsed:
    """One document.

    Attributes:
        value: plain data.
        line: the line where it begins.
        lines: those of its parts.
    """

    value: Any
    line: int
    lines: Lines = field(default_factory=dict)


def parse_yaml(text: str, source: str, above: int = 0) -> Iterator[Parsed]:
    """Yields the documents of a text, including empty ones; `above` counts the lines before the text.

    Raises:
        ManifestError: at the first unreadable place.
    """
    try:
        yield from _Reader(text, source, above).documents()
    except yaml.MarkedYAMLError as error:
        raise _explained(error, text, source, above) from None
    except yaml.reader.ReaderError:
        raise _unprintable(text, source, above) from None


class _Reader:
    """Builds values from the parser's events, so that limits are checked before an alias multiplies anything."""

    def __init__(self, text: str, source: str, above: int) -> None:
        self._next: Callable[[], Event] = yaml.CSafeLoader(text).get_event
        self._source = source
        self._first_line = above + 1
        self._begin_document()

    def _begin_document(self) -> None:
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._lines: dict[int, list[int]] = {}
        self._size = 0
        self._aliased = 0

    def documents(self) -> Iterator[Parsed]:
        while type(event := self._next()) is not StreamEndEvent:
            if type(event) is DocumentStartEvent:
                self._begin_document()
                first = self._next()
                value = self._value(first, 0)
                yield Parsed(value, self._line(first), self._lines)

    def _value(self, event: Event, depth: int) -> Any:
        kind = type(event)
        if kind is AliasEvent:
            return self._alias(event)
        before = self._size
        value = self._scalar(event) if kind is ScalarEvent else self._collection(event, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._size - before)
        return value

    def _collection(self, event: Event, depth: int) -> Any:
        if depth == MAX_DEPTH:
            self._refuse(
                event,
                f"more than {MAX_DEPTH} levels of nesting",
                "flatten it: no Kubernetes object is so deep",
            )
        self._size += 1
        return self._mapping(depth + 1) if type(event) is MappingStartEvent else self._sequence(depth + 1)

    def _sequence(self, depth: int) -> list[Any]:
        found: list[Any] = []
        lines: list[int] = []
        while type(event := self._next()) is not SequenceEndEvent:
            lines.append(self._line(event))
            found.append(self._value(event, depth))
        self._lines[id(found)] = lines
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        inherited: list[dict[str, Any]] = []
        lines: list[int] = []
        while type(event := self._next()) is not MappingEndEvent:
            key = self._key(event, depth)
            if key == "<<" and _is_plain(event):
                inherited += self._inherited(self._next(), depth)
            elif key in found:
                self._refuse(event, f'the key "{printable(key, 80)}" appears twice in one mapping', "keep one of them")
            else:
                lines.append(self._line(event))
                found[key] = self._value(self._next(), depth)
        if inherited:
            found, lines = {**_first_wins(inherited), **found}, []
        self._lines[id(found)] = lines
        return found

    def _key(self, event: Event, depth: int) -> str:
        """Returns a key as text, like kubectl, since JSON has only text keys."""
        key = self._value(event, depth)
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, str | int):
            return str(key)
        return self._refuse(
            event, "a key that is no text", "quote the key, or check the colons and brackets of this line"
        )

    def _inherited(self, event: Event, depth: int) -> list[dict[str, Any]]:
        value = self._value(event, depth)
        mappings = value if isinstance(value, list) else [value]
        if not all(isinstance(mapping, dict) for mapping in mappings):
            self._refuse(event, "<< merges something that is no mapping", "name an anchored mapping after <<:")
        return mappings

    def _alias(self, event: Event) -> Any:
        if event.anchor not in self._anchors:
            self._refuse(
                event,
                f"the alias *{event.anchor} has no finished anchor before it",
                f"define &{event.anchor} first",
            )
        value, size = self._anchors[event.anchor]
        self._size += size
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            self._refuse(event, f"aliases expand to more than {MAX_ALIASED} characters", "write the values out")
        return value

    def _scalar(self, event: Event) -> Any:
        text: str = event.value
        self._size += len(text) + 1
        tag = event.tag
        if tag is None and not event.implicit[0]:
            return text
        try:
            if tag is None or tag in _RESOLVED_TAGS:
                return plain(text)
            return _from_base64(text) if tag == _BINARY else text
        except ValueError as error:
            return self._refuse(
                event, f'got "{printable(text, 40)}": {error}', "write another value, or quote it as text"
            )

    def _refuse(self, event: Event, what: str, fix: str) -> NoReturn:
        raise ManifestError(self._source, self._line(event), what=what, fix=fix)

    def _line(self, event: Event) -> int:
        return int(event.start_mark.line) + self._first_line


def _is_plain(event: Event) -> bool:
    return type(event) is ScalarEvent and bool(event.implicit[0])


def _first_wins(mappings: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: value for mapping in reversed(mappings) for key, value in mapping.items()}


def _from_base64(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except ValueError:
        raise ValueError("!!binary holds no base64 of UTF-8 text") from None


def _explained(error: yaml.MarkedYAMLError, text: str, source: str, above: int) -> ManifestError:
    mark = error.problem_mark or error.context_mark
    row = mark.line if mark is not None else 0
    line = text.split("\n")[row] if row <= text.count("\n") else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return ManifestError(source, above + row + 1, what="a tab in the indentation", fix="YAML indents with spaces")
    problem = " ".join(part for part in (error.problem, error.context) if part)
    return ManifestError(source, above + row + 1, what=problem or "this is no YAML", fix=_fix(problem))


def _fix(problem: str) -> str:
    return next((fix for sign, fix in _FIXES.items() if sign in problem), _FIXES[""])


_FIXES: Final = {
    "mapping values are not allowed": "quote the value, or check the indentation of this line",
    "could not find expected ':'": "end the key with a colon and a space",
    "quoted scalar": "close the quote",
    "flow": "close the bracket, and put commas between the values",
    "cannot start any token": "quote the value",
    "undefined alias": "define the anchor first",
    "": "compare the indentation, dashes and quotes with the lines above",
}


def _unprintable(text: str, source: str, above: int) -> ManifestError:
    found = _UNPRINTABLE.search(text)
    at = found.start() if found else 0
    what = f"the control character U+{ord(text[at]):04X}" if found else "characters that YAML does not allow"
    return ManifestError(
        source,
        above + text.count("\n", 0, at) + 1,
        what=what,
        fix="remove it, or write it as an escape in double quotes",
    )
