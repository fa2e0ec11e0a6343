"""Kubernetes quantities, exact: the number is an integer count of nanos, never a float.

The grammar and the canonical spelling are those of `resource.Quantity` in the API server. The API server accepts a few
more texts that are always mistakes: texts without a digit (as 0), exponents beyond eight bits, and hundreds of digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

Family = Literal["decimal", "binary", "exponent"]

NANOS: Final = 10**9
"""Nanos in one; the API server keeps nothing finer and rounds away from zero."""

INT64_MAX: Final = 2**63 - 1
"""The API server caps binary amounts here, and only those."""

_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?",
    re.ASCII,
)
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIX: Final = ["", *_BINARY]
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()} | {0: ""}
_MAX_LENGTH: Final = 400
"""Longer texts are refused: nothing real needs them and arithmetic on them is not free."""

_EXPONENTS: Final = range(-128, 128)
"""Refused beyond, for the same reason."""


class InvalidQuantity(ValueError):
    """The text is not a Kubernetes quantity."""


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact amount. Two spellings of one amount are equal; `str()` is the API server's canonical spelling.

    Attributes:
        nanos: the amount in thousandths of millionths.
        family: which suffixes the canonical spelling uses.
    """

    nanos: int
    family: Family = field(default="decimal", compare=False)

    @classmethod
    def of(cls, amount: int) -> Quantity:
        """Makes the quantity of a whole number, spelled in decimal."""
        return cls(amount * NANOS)

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Parses a text.

        Raises:
            InvalidQuantity: Kubernetes would refuse the text too.
        """
        return _parse(text)

    def as_int(self) -> int | None:
        """Returns the amount; None where it is not a whole number."""
        whole, rest = divmod(self.nanos, NANOS)
        return None if rest else whole

    def __str__(self) -> str:
        if self.family == "binary":
            return _spell_binary(self.nanos)
        mantissa, exponent = _mantissa(self.nanos)
        if self.family == "exponent":
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        return f"{mantissa}{_DECIMAL_SUFFIX.get(exponent, f'e{exponent}')}"


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity:
    match = _GRAMMAR.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None or not (match["whole"] or match["fraction"]):
        raise InvalidQuantity(text)
    fraction = match["fraction"] or ""
    digits = int((match["whole"] or "") + fraction)
    scale, family = _scale(match["suffix"] or "", text)
    nanos = _round_up(digits * scale[0] * NANOS, 10 ** len(fraction) * scale[1])
    if family == "binary":
        nanos = min(nanos, INT64_MAX * NANOS)
    return Quantity(-nanos if match["sign"] == "-" else nanos, _kept_family(family, nanos))


def _scale(suffix: str, text: str) -> tuple[tuple[int, int], Family]:
    """Returns the factor of a suffix as numerator and denominator, and the family of the suffix."""
    if suffix in _BINARY:
        return (1024 ** _BINARY[suffix], 1), "binary"
    if suffix in _DECIMAL or not suffix:
        return _power_of_ten(_DECIMAL.get(suffix, 0)), "decimal"
    exponent = int(suffix[1:])
    if exponent not in _EXPONENTS:
        raise InvalidQuantity(text)
    return _power_of_ten(exponent), "exponent"


def _power_of_ten(exponent: int) -> tuple[int, int]:
    return (10**exponent, 1) if exponent >= 0 else (1, 10**-exponent)


def _round_up(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)


def _kept_family(family: Family, nanos: int) -> Family:
    """Returns the family of the canonical spelling: decimal for binary amounts below 1024 and for fractions."""
    if family == "binary" and (abs(nanos) < 1024 * NANOS or nanos % NANOS):
        return "decimal"
    return family


def _spell_binary(nanos: int) -> str:
    amount, steps = nanos // NANOS, 0
    while amount and amount % 1024 == 0 and steps < 6:
        amount, steps = amount // 1024, steps + 1
    return f"{amount}{_BINARY_SUFFIX[steps]}"


def _mantissa(nanos: int) -> tuple[int, int]:
    """Returns the smallest whole mantissa whose power of ten is a multiple of three."""
    mantissa, exponent = nanos, -9
    while mantissa and mantissa % 1000 == 0 and exponent + 3 in _EXPONENTS:
        mantissa, exponent = mantissa // 1000, exponent + 3
    return (mantissa, exponent) if mantissa else (0, 0)
