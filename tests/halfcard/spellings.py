"""Spellings of quantities, and their amounts by exact fractions instead of the product's arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, NamedTuple

from hypothesis import strategies as st

from halfcard.quantity import Quantity

POWERS: Final = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    **{suffix: Fraction(1000**step) for step, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024**step) for step, suffix in enumerate("KMGTPE", start=1)},
}


class Spelling(NamedTuple):
    """A text of the grammar, taken apart."""

    sign: str
    whole: str
    fraction: str | None
    suffix: str

    def __str__(self) -> str:
        point = "" if self.fraction is None else f".{self.fraction}"
        return f"{self.sign}{self.whole}{point}{self.suffix}"

    @property
    def is_binary(self) -> bool:
        return self.suffix.endswith("i")

    def worth(self) -> Fraction:
        """The amount by an independent computation: exact fractions from the parts."""
        ones = (int(digit) * Fraction(10**place) for place, digit in enumerate(reversed(self.whole)))
        parts = (int(digit) / Fraction(10**place) for place, digit in enumerate(self.fraction or "", start=1))
        number = sum((*ones, *parts), start=Fraction(0))
        power = POWERS[self.suffix] if self.suffix in POWERS else Fraction(10) ** int(self.suffix[1:])
        nanos = Fraction(math.ceil(number * power * 10**9), 10**9)
        magnitude = min(nanos, Fraction(2**63 - 1)) if self.is_binary else nanos
        return -magnitude if self.sign == "-" else magnitude


digits = st.text("0123456789", max_size=25) | st.sampled_from(["0", "1000", "1024", "000", "999999999"])
exponents = st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 127))
spellings = st.builds(
    Spelling,
    st.sampled_from(["", "+", "-"]),
    digits,
    st.none() | digits,
    st.sampled_from(list(POWERS)) | exponents,
).filter(lambda spelling: bool(spelling.whole or spelling.fraction))
quantities = spellings.map(lambda spelling: Quantity.parse(str(spelling)))

everyday = st.builds(
    "{}{}{}".format,
    st.integers(-2, 3000) | st.sampled_from([2**20 - 1, 2**20, 2**28 - 1, 2**31 - 1, 2**31, 10**12]),
    st.sampled_from(["", "", ".3", ".5", ".25", ".305", ".001"]),
    st.sampled_from(["", "", "m", "k", "M", "Ki", "Mi", "Gi", "Ti", "e1", "e3"]),
)
amounts = quantities | everyday.map(Quantity.parse)
"""Quantities, most of them of the size that people ask GPUs for."""
