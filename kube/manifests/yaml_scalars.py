"""Resolves unquoted YAML scalars like kubectl: YAML 1.1's booleans, Go's integers, dates as text.

Invariant: no number passes through binary floating point. A number that is no 64-bit integer keeps its digits.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

Scalar = str | int | bool | None


class Number(str):
    """A number with its original digits, such as 0.3 or 3e1."""

    __slots__ = ()

    def as_json(self) -> bytes:
        """Returns the same digits in JSON's stricter grammar, which has no +1, .5, 5. and 08."""
        digits = _BARE_POINT.sub("", self.lstrip("+-")).lstrip("0")
        leading = "" if digits[:1].isdecimal() else "0"
        return f"{'-' * self.startswith('-')}{leading}{digits}".encode()


_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NO_NUMBERS: Final = frozenset(sign + word for word in (".inf", ".Inf", ".INF") for sign in ("", "+", "-")) | {
    ".nan",
    ".NaN",
    ".NAN",
}
_NUMBER_START: Final = frozenset("+-.0123456789")
_INTEGER: Final = re.compile(
    r"(?P<sign>[+-]?)(?:0[bB](?P<b>[01]+)|0[xX](?P<x>[0-9a-fA-F]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>0|[1-9][0-9]*))",
    re.ASCII,
)
_BASES: Final = {"b": 2, "x": 16, "o": 8, "d": 10}
_FRACTION: Final = re.compile(r"[+-]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_BARE_POINT: Final = re.compile(r"\.(?![0-9])")
_MAX_DIGITS: Final = 4000
"""Below the limit of Python's int(), and far above any useful number."""

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1


@lru_cache(maxsize=4096)
def plain(text: str) -> Scalar:
    """Returns the value of an unquoted scalar.

    Raises:
        ValueError: infinity, not-a-number, or a number of thousands of digits: JSON has none of these.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text in _NO_NUMBERS:
        raise ValueError("infinity and not-a-number cannot be sent to Kubernetes")
    return _number(text) if text[0] in _NUMBER_START else text


def _number(text: str) -> Scalar:
    digits = text if text[0] == "." else text.replace("_", "")
    integer, fraction = _INTEGER.fullmatch(digits), _FRACTION.fullmatch(digits)
    if (integer or fraction) and len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} characters")
    if integer:
        return _integer(integer)
    if fraction and float(digits) not in _INFINITE:
        return Number(digits)
    return text


_INFINITE: Final = (float("inf"), float("-inf"))
"""kubectl's parser reads a number that overflows as text."""


def _integer(match: re.Match[str]) -> int | Number:
    base = next(name for name in _BASES if match[name] is not None)
    return exact(int(match["sign"] + match[base], _BASES[base]))


def exact(number: int) -> int | Number:
    """Returns the integer if it fits in 64 bits, else its digits."""
    return number if _SMALLEST <= number <= _LARGEST else Number(number)
