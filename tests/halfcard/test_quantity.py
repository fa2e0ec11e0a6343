from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.quantity import INT64_MAX, NANOS, InvalidQuantity, Quantity

from .spellings import Spelling, quantities, spellings

# --- tables: every row was answered by Kubernetes' own parser (k8s.io/apimachinery 0.37.1) ----------------------------

CANONICAL: Final = {
    "0": "0",
    "30": "30",
    "30000m": "30",
    "3e1": "30",
    "3E1": "30",
    "0.03k": "30",
    "30.0": "30",
    "+30": "30",
    "030": "30",
    "30.": "30",
    "00.300": "300m",
    ".5": "500m",
    "-.5": "-500m",
    "0.3": "300m",
    "300m": "300m",
    "1500m": "1500m",
    "-3": "-3",
    "1000": "1k",
    "1023": "1023",
    "1024": "1024",
    "1.5G": "1500M",
    "1000n": "1u",
    "1000000u": "1",
    "1P": "1P",
    "1E": "1E",
    "1Ki": "1Ki",
    "5Gi": "5Gi",
    "-5Gi": "-5Gi",
    "1.5Gi": "1536Mi",
    "0.5Gi": "512Mi",
    "1.25Ti": "1280Gi",
    "1024Mi": "1Gi",
    "1000Ki": "1000Ki",
    "1025Ki": "1025Ki",
    "0.5Ki": "512",
    "0.9765625Ki": "1k",
    "1.5Ki": "1536",
    "-1.5Ki": "-1536",
    "0.1Ki": "102400m",
    "0.0001Ki": "102400u",
    "1Pi": "1Pi",
    "1e1": "10",
    "1e3": "1e3",
    "1E3": "1e3",
    "1e+2": "100",
    "1e02": "100",
    "12e6": "12e6",
    "1e21": "1e21",
    "1e-3": "1e-3",
    "1E-3": "1e-3",
    "1e-09": "1e-9",
    "1500e-3": "1500e-3",
    "12345.678e3": "12345678",
    "0n": "0",
    "-0": "0",
    "-0.0": "0",
    "0Ki": "0",
    "0e5": "0",
    "1n": "1n",
    "0.9n": "1n",
    "-0.9n": "-1n",
    "1.0000000001": "1000000001n",
    "7Ei": "7Ei",
    "8Ei": "9223372036854775807",
    "-8Ei": "-9223372036854775807",
    "9223372036854775808": "9223372036854775808",
    "123456789012345678901234567890": "123456789012345678901234567890",
}

REFUSED: Final = [
    *("", " 1", "1 ", "1 000", "1 Gi", "1Gi\n", "\x00", "1\x00"),
    *("1gi", "1ki", "1KI", "1K", "1mi", "1i", "i", "1GiB", "5GB", "1kk", "1mk", "Gi5", "1k5"),
    *("1e", "1e+", "1E+", "1e1.5", "1.5e0.5", "1e 3", "1e9999999999999999999"),
    *("--1", "1-", "1+", "1.2.3", "1,5", "1_000", "0x10"),
    *("abc", "five", "inf", "nan", "½", "１", "٣"),  # noqa: RUF001 - digits of other scripts are meant
]

STRICTER: Final = {
    "no digit at all": [".", "-", "+", "m", "Ki", "e3", "-.Gi"],
    "an exponent beyond eight bits": ["1e128", "1e-129", "1e2147483648"],
    "hundreds of digits": ["1" * 401, "0." + "0" * 399],
}
"""Quantities that Kubernetes accepts and Halfcard refuses as implausible."""


@pytest.mark.parametrize(("text", "canonical"), CANONICAL.items())
def test_the_canonical_spelling_is_that_of_the_api_server(text: str, canonical: str) -> None:
    assert str(Quantity.parse(text)) == canonical


@pytest.mark.parametrize("text", REFUSED)
def test_quantities_that_kubernetes_refuses_are_refused(text: str) -> None:
    with pytest.raises(InvalidQuantity):
        Quantity.parse(text)


@pytest.mark.parametrize("text", [text for texts in STRICTER.values() for text in texts])
def test_implausible_quantities_are_refused(text: str) -> None:
    with pytest.raises(InvalidQuantity):
        Quantity.parse(text)


@pytest.mark.parametrize("text", ["1e127", "1e-128", "1" * 400, "-" + "1" * 399, "1" * 396 + "e127"])
def test_quantities_at_the_bounds_are_read(text: str) -> None:
    assert Quantity.parse(text).nanos


# --- laws -------------------------------------------------------------------------------------------------------------


@given(spellings)
def test_the_amount_is_that_of_an_independent_exact_computation(spelling: Spelling) -> None:
    assert Fraction(Quantity.parse(str(spelling)).nanos, NANOS) == spelling.worth()


@given(quantities)
def test_the_canonical_spelling_is_equal_and_canonical_itself(quantity: Quantity) -> None:
    assert Quantity.parse(str(quantity)) == quantity
    assert str(Quantity.parse(str(quantity))) == str(quantity)


@given(quantities)
def test_the_canonical_spelling_is_whole_and_has_the_largest_suffix(quantity: Quantity) -> None:
    match = re.fullmatch(r"-?(0|[1-9][0-9]*)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|e-?[0-9]+)?", str(quantity))
    assert match is not None
    mantissa, suffix = int(match[1]), match[2] or ""
    if suffix.endswith("i"):
        assert mantissa % 1024 or suffix == "Ei"
    elif abs(quantity.nanos) < 10**100 and quantity.family != "binary":
        assert mantissa % 1000 or str(quantity) == "0"


@given(st.text(max_size=12) | st.text("0123456789.+-eEKMGTPinumk ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except InvalidQuantity:
        return
    assert Quantity.parse(str(quantity)) == quantity


@given(st.lists(spellings, min_size=2, max_size=5))
def test_the_order_is_that_of_the_amounts(some: list[Spelling]) -> None:
    ordered = sorted(some, key=lambda spelling: Quantity.parse(str(spelling)))
    assert [spelling.worth() for spelling in ordered] == sorted(spelling.worth() for spelling in some)
    for low, high in pairwise(ordered):
        assert Quantity.parse(str(low)) <= Quantity.parse(str(high))


@pytest.mark.parametrize(("one", "other"), [("1Ki", "1024"), ("1e3", "1k"), ("0", "-0Gi"), ("1", "1000m")])
def test_two_spellings_of_one_amount_are_equal_in_every_way(one: str, other: str) -> None:
    a, b = Quantity.parse(one), Quantity.parse(other)
    assert a == b and a <= b <= a
    assert not a < b and not b < a
    assert {a: "found"}[b] == "found"


@given(st.fractions(min_value=0, max_value=1).filter(bool), st.sampled_from(["", "-"]))
def test_less_than_a_nano_is_rounded_away_from_zero(part: Fraction, sign: str) -> None:
    decimals = str(math.ceil(part * 10**20)).zfill(21)
    text = f"{sign}{decimals[:1]}.{decimals[1:]}n"
    assert Quantity.parse(text).nanos == (-1 if sign else 1)


@pytest.mark.parametrize("text", ["8Ei", "8388608Ti", "1" * 300 + "Ki", "9007199254740992.5Ki"])
def test_binary_amounts_are_capped_as_the_api_server_caps_them(text: str) -> None:
    assert Quantity.parse(text) == Quantity.of(INT64_MAX)
    assert Quantity.parse("-" + text) == Quantity.of(-INT64_MAX)


def test_decimal_amounts_are_not_capped() -> None:
    assert Quantity.parse("10E") == Quantity.of(10**19) > Quantity.of(INT64_MAX)


@pytest.mark.parametrize(("text", "whole"), [("30000m", 30), ("5Ki", 5120), ("-2", -2), ("0.3", None), ("1n", None)])
def test_a_whole_amount_is_known_as_such(text: str, whole: int | None) -> None:
    assert Quantity.parse(text).as_int() == whole


def test_beyond_exa_the_exponent_is_spelled_instead_of_lost() -> None:
    assert str(Quantity.parse("1000E")) == "1e21"


@given(st.integers(-(2**70), 2**70))
def test_a_number_is_spelled_in_decimal(amount: int) -> None:
    assert Quantity.parse(str(Quantity.of(amount))).as_int() == amount
    assert not str(Quantity.of(amount)).endswith("i")
