"""Parses JSON text into plain data: a stream of documents like kubectl's, each one strictly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import jiter

from .manifest_error import ManifestError
from .yaml_documents import Parsed
from .yaml_scalars import Number, exact

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_PLACE: Final = re.compile(r"(?P<what>.*) at line (?P<line>[0-9]+) column [0-9]+", re.DOTALL)
_MAX_DIGITS: Final = 4000


class _ConstantError(ValueError):
    """NaN or Infinity, which Python's parser reports without a position."""


class NotJsonError(ManifestError):
    """The text is not valid JSON; it may be another format."""


def parse_json(text: str, source: str) -> Iterator[Parsed | ManifestError]:
    """Parses the documents of a text; yields an error in the place of one that programs read differently.

    Raises:
        NotJsonError: the text is not JSON.
        ManifestError: it cannot be read to its end.
    """
    start = _skip_blank(text, 0)
    line = 1 + text.count("\n", 0, start)
    while start < len(text):
        value, end = _document(text, start, source)
        yield _ambiguity(text[start:end], line, source) or Parsed(value, line)
        following = _skip_blank(text, end)
        line += text.count("\n", start, following)
        start = following


def _skip_blank(text: str, start: int) -> int:
    match = _BLANK.match(text, start)
    return match.end() if match else start


def _document(text: str, start: int, source: str) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        what = f"no JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise NotJsonError(source, error.lineno, what=what, fix="correct the JSON there") from None
    except _ConstantError as constant:  # the stricter parser has no constants
        raise _ambiguity(text[start:], 1 + text.count("\n", 0, start), source) or constant from None
    except RecursionError:
        line = 1 + text.count("\n", 0, start)
        what, fix = "too many levels of nesting", "flatten it: no Kubernetes object is so deep"
        raise ManifestError(source, line, what=what, fix=fix) from None


def _ambiguity(document: str, line: int, source: str) -> ManifestError | None:
    """Returns an error for what Python's own parser accepts: duplicate keys, lone surrogates, great depth."""
    try:
        jiter.from_json(document.encode(), catch_duplicate_keys=True, allow_inf_nan=False, float_mode="lossless-float")
    except ValueError as error:
        place = _PLACE.fullmatch(str(error))
        what = place["what"] if place else str(error)
        at = line + int(place["line"]) - 1 if place else line
        return ManifestError(source, at, what=what[:1].lower() + what[1:], fix=_fix(what))
    return None


def _fix(what: str) -> str:
    return "keep one of them" if "duplicate key" in what else "correct the JSON there"


def _integer(text: str) -> int | Number:
    return exact(int(text)) if len(text) <= _MAX_DIGITS else Number(text)


def _refuse_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


_DECODER: Final = json.JSONDecoder(parse_float=Number, parse_int=_integer, parse_constant=_refuse_constant)
