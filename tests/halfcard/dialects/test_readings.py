"""How amounts are read: what is repaired, what is refused and with which nearest values."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from halfcard import names
from halfcard.claims import MEMORY
from halfcard.dialects import ALL, AmountRefusal, Dialect, Dialects, ParsedAmount
from halfcard.dialects.dialect import MAX_AMOUNT
from halfcard.problems import CORES, MEMORY_UNITS, QUANTITY, QUOTA_CORES, Rule
from halfcard.quantity import NANOS, Quantity
from tests.halfcard.spellings import amounts

TENCENT: Final = ALL[0]
MIB: Final = 2**20

WORDS: Final = [(dialect, resource) for dialect in ALL for resource in sorted(dialect.resources)]


def read(resource: str, text: str, dialect: Dialect = TENCENT) -> ParsedAmount | AmountRefusal:
    return dialect.read(resource, Quantity.parse(text))


def read_total(resource: str, text: str) -> ParsedAmount | AmountRefusal:
    return TENCENT.read_total(resource, Quantity.parse(text))


def suggestions(refusal: AmountRefusal) -> list[str]:
    """The numbers after "use"."""
    match = re.match(r"use ([0-9]+)(?: or ([0-9]+))?", refusal.fix)
    return [number for number in match.groups() if number] if match else []


# --- cores ------------------------------------------------------------------------------------------------------------

SHARES: Final = {
    "0.3": 30,
    "300m": 30,
    "0.30": 30,
    "3e-1": 30,
    ".01": 1,
    "10m": 1,
    "0.99": 99,
    "0.5": 50,
    "0.005k": 5,
    "30": 30,
    "30000m": 30,
    "3e1": 30,
    "0.03k": 30,
    "30.0": 30,
    "1": 1,
    "99": 99,
    "1.0": 1,
    "100": 100,
    "0.1k": 100,
    "1e2": 100,
    "150": 150,
    "1k": 1000,
    "0": 0,
    "0.0": 0,
    "2147483647": 2147483647,
}


@pytest.mark.parametrize(("text", "cores"), SHARES.items())
def test_a_fraction_of_a_card_becomes_percent_and_whole_numbers_stay(text: str, cores: int) -> None:
    reading = read(names.VCUDA_CORE, text)
    assert isinstance(reading, ParsedAmount)
    assert (reading.amount, reading.note) == (cores, "")


NOT_CORES: Final = {
    "0.305": (CORES, ["30", "31"]),
    "0.999": (CORES, ["99", "100"]),
    "0.001": (CORES, ["1"]),
    "1n": (CORES, ["1"]),
    "1.5": (CORES, ["100", "200"]),
    "2.01": (CORES, ["200", "300"]),
    "1.001": (CORES, ["100", "200"]),
    "8.5": (CORES, ["800", "900"]),
    "30.5": (CORES, ["30", "31"]),  # no node has 30 cards: per cent are meant
    "99.5": (CORES, ["99", "100"]),
    "150.5": (CORES, ["100", "200"]),
    "-0.5": (CORES, ["100"]),
    "99999999.5": (CORES, ["99999900", "100000000"]),
    "-1": (QUANTITY, ["0"]),
    "2147483648": (QUANTITY, []),
    "5Gi": (QUANTITY, []),
}


@pytest.mark.parametrize(("text", "rule", "nearest"), [(text, *refused) for text, refused in NOT_CORES.items()])
def test_an_invalid_share_is_refused_with_the_nearest_valid_ones(text: str, rule: Rule, nearest: list[str]) -> None:
    refusal = read(names.VCUDA_CORE, text)
    assert isinstance(refusal, AmountRefusal)
    assert (refusal.rule, suggestions(refusal)) == (rule, nearest)


@pytest.mark.parametrize("cores", range(1, 10))
def test_a_whole_number_below_ten_stays_and_is_explained(cores: int) -> None:
    reading = read(names.VCUDA_CORE, str(cores))
    assert isinstance(reading, ParsedAmount)
    assert reading.amount == cores
    assert f"{cores}00" in reading.hint


@pytest.mark.parametrize("text", ["0", "10", "30", "100", "0.05", "50m"])
def test_other_numbers_are_not_explained(text: str) -> None:
    reading = read(names.VCUDA_CORE, text)
    assert isinstance(reading, ParsedAmount) and not reading.hint


# --- memory -----------------------------------------------------------------------------------------------------------

UNITS: Final = {
    "5Gi": 20,
    "0.25Gi": 1,
    "256Mi": 1,
    "512Mi": 2,
    "1Ti": 4096,
    "5368709120": 20,
    "268435456": 1,
    "20": 20,
    "0": 0,
    "0Gi": 0,
    "2e1": 20,
    "20000m": 20,
    "1k": 1000,
    "1000": 1000,
    "1M": 1000000,
    "1048575": 1048575,
    "0.5Ki": 512,
    "1.5Ki": 1536,  # the API server sends these without a suffix
}
ROUNDED: Final = {"5000Mi": 20, "1Mi": 1, "257Mi": 2, "1Ki": 1, "1G": 4, "5G": 19, "1048576": 1, "1048576.5": 1}


@pytest.mark.parametrize(("text", "units"), UNITS.items())
def test_memory_is_read_as_units_unless_it_can_only_be_bytes(text: str, units: int) -> None:
    assert read(names.VCUDA_MEMORY, text) == ParsedAmount(units)


@pytest.mark.parametrize(("text", "units"), ROUNDED.items())
def test_bytes_are_rounded_up_to_units_with_a_warning(text: str, units: int) -> None:
    reading = read(names.VCUDA_MEMORY, text)
    assert isinstance(reading, ParsedAmount)
    assert reading.amount == units
    assert str(Quantity.parse(text)) in reading.note and f" {units} units" in reading.note


NOT_MEMORY: Final = {
    "0.5": ["1"],
    "19.5": ["20"],
    "-1": ["0"],
    "-5Gi": ["0"],
    "1048575.5": ["1048575"],
    "256Ti": [],
    "8Ei": [],
    "1e30": [],
}


@pytest.mark.parametrize(("text", "nearest"), NOT_MEMORY.items())
def test_memory_beyond_any_card_or_not_whole_is_refused(text: str, nearest: list[str]) -> None:
    refusal = read(names.VCUDA_MEMORY, text)
    assert isinstance(refusal, AmountRefusal)
    assert (refusal.rule, suggestions(refusal)) == (MEMORY_UNITS, nearest)


# --- the budget of a namespace ----------------------------------------------------------------------------------------

TOTALS: Final = {
    "1.5": 150,
    "0.5": 50,
    "0.01": 1,
    "10.25": 1025,
    "0.03k": 30,
    "150": 150,
    "7": 7,
    "0": 0,
    "21474836.47": MAX_AMOUNT,
}
NOT_TOTALS: Final = {
    "0.305": (QUOTA_CORES, ["30", "31"]),
    "1.001": (QUOTA_CORES, ["100", "101"]),
    "0.001": (QUOTA_CORES, ["0", "1"]),
    "-0.5": (QUOTA_CORES, ["0", "1"]),
    "21474836.48": (QUOTA_CORES, ["2147483646", "2147483647"]),
    "-5": (QUANTITY, ["0"]),
    "3G": (QUANTITY, []),
}


@pytest.mark.parametrize(("text", "cores"), TOTALS.items())
def test_a_budget_of_cores_may_be_written_in_cards(text: str, cores: int) -> None:
    assert read_total(names.VCUDA_CORE, text) == ParsedAmount(cores)


@pytest.mark.parametrize(("text", "rule", "nearest"), [(text, *refused) for text, refused in NOT_TOTALS.items()])
def test_an_invalid_budget_is_refused_with_the_nearest_valid_one(text: str, rule: Rule, nearest: list[str]) -> None:
    refusal = read_total(names.VCUDA_CORE, text)
    assert isinstance(refusal, AmountRefusal)
    assert (refusal.rule, suggestions(refusal)) == (rule, nearest)


@pytest.mark.parametrize(("text", "units"), {"5000Mi": 19, "1Mi": 0, "5Gi": 20, "20": 20, "1G": 3}.items())
def test_a_budget_of_memory_is_never_more_than_was_written(text: str, units: int) -> None:
    reading = read_total(names.VCUDA_MEMORY, text)
    assert isinstance(reading, ParsedAmount)
    assert reading.amount == units
    assert not reading.note or f" {units} units" in reading.note


# --- all the others count in whole numbers ----------------------------------------------------------------------------

PLAIN: Final = [
    (dialect, resource) for dialect, resource in WORDS if resource.split("/")[1].partition("-")[0] != "vcuda"
]


@pytest.mark.parametrize(("dialect", "resource"), PLAIN, ids=lambda it: getattr(it, "name", it))
@pytest.mark.parametrize(("text", "amount"), {"3": 3, "3000m": 3, "3k": 3000, "1Ki": 1024, "0": 0}.items())
def test_other_dialects_accept_whole_numbers(dialect: Dialect, resource: str, text: str, amount: int) -> None:
    assert read(resource, text, dialect) == ParsedAmount(amount)


@pytest.mark.parametrize(("dialect", "resource"), PLAIN, ids=lambda it: getattr(it, "name", it))
@pytest.mark.parametrize(("text", "nearest"), {"0.5": "1", "1.5": "2", "-1": "0"}.items())
def test_other_dialects_refuse_fractions(dialect: Dialect, resource: str, text: str, nearest: str) -> None:
    refusal = read(resource, text, dialect)
    assert isinstance(refusal, AmountRefusal)
    assert (refusal.rule, suggestions(refusal)) == (QUANTITY, [nearest])


@pytest.mark.parametrize(("dialect", "resource"), PLAIN, ids=lambda it: getattr(it, "name", it))
def test_a_byte_suffix_is_converted_where_memory_is_counted_and_else_refused(dialect: Dialect, resource: str) -> None:
    unit, refusal = dialect.units.get(resource), read(resource, "5Gi", dialect)
    if unit is not None and unit.counted == MEMORY:
        assert refusal == ParsedAmount(5 * 1024 // unit.size)
        return
    assert isinstance(refusal, AmountRefusal)
    assert "without a suffix" in refusal.fix


def test_bytes_of_gpushare_are_rounded_up_in_a_pod_and_down_in_a_quota() -> None:
    (gpushare,) = [dialect for dialect in ALL if dialect.name == "aliyun"]
    up = gpushare.read(names.ALIYUN_GPU_MEM, Quantity.parse("5000Mi"))
    down = gpushare.read_total(names.ALIYUN_GPU_MEM, Quantity.parse("5000Mi"))
    assert up == ParsedAmount(5, "5000Mi was rounded up to 5 units of 1024 MiB")
    assert down == ParsedAmount(4, "5000Mi was rounded down to 4 units of 1024 MiB")


@pytest.mark.parametrize("dialect", ["nvidia", "hami"])
def test_a_fraction_of_a_card_is_answered_with_how_a_part_is_requested(dialect: str) -> None:
    refusal = read(names.NVIDIA_GPU, "0.5", Dialects().by_name[dialect])
    assert isinstance(refusal, AmountRefusal)
    assert refusal.fix == "use 1, with nvidia.com/gpucores: 50 and nvidia.com/gpumem in MiB for a part of a card"


# --- laws -------------------------------------------------------------------------------------------------------------


ways = st.sampled_from(
    [partial(read, resource) for dialect, resource in WORDS for read in (dialect.read, dialect.read_total)]
)
"""Every resource of every system, for a pod and for a quota."""

Read = Callable[[Quantity], ParsedAmount | AmountRefusal]


@given(ways, amounts)
def test_a_repair_needs_no_second_repair(read: Read, quantity: Quantity) -> None:
    first = read(quantity)
    if isinstance(first, ParsedAmount):
        second = read(Quantity.parse(str(first.amount)))
        assert isinstance(second, ParsedAmount)
        assert (second.amount, second.note) == (first.amount, "")


@given(ways, amounts)
def test_another_spelling_by_the_api_server_changes_nothing(read: Read, quantity: Quantity) -> None:
    assert read(Quantity.parse(str(quantity))) == read(quantity)


@given(ways, amounts)
@example(partial(Dialects().by_name["aliyun"].read, names.ALIYUN_GPU_MEM), Quantity.parse("1048575.3"))
def test_amounts_are_within_bounds_and_suggestions_are_valid_amounts(read: Read, quantity: Quantity) -> None:
    answer = read(quantity)
    if isinstance(answer, ParsedAmount):
        assert 0 <= answer.amount <= MAX_AMOUNT
    else:
        for number in suggestions(answer):
            taken = read(Quantity.parse(number))
            assert isinstance(taken, ParsedAmount)
            assert (taken.amount, taken.note) == (int(number), "")


@given(amounts.filter(lambda quantity: quantity.nanos > 0))
def test_a_share_rounds_bytes_up_and_a_budget_rounds_them_down(quantity: Quantity) -> None:
    up, down = TENCENT.read(names.VCUDA_MEMORY, quantity), TENCENT.read_total(names.VCUDA_MEMORY, quantity)
    if isinstance(up, ParsedAmount) and isinstance(down, ParsedAmount) and up.note:
        unit = 256 * MIB * NANOS
        assert down.amount * unit < quantity.nanos < up.amount * unit
        assert up.amount - down.amount == 1


@given(amounts)
def test_dialects_with_the_same_resource_read_it_alike(quantity: Quantity) -> None:
    dialects = Dialects()
    for dialect, resource in WORDS:
        assert dialect.read(resource, quantity) == dialects.by_resource[resource].read(resource, quantity)
