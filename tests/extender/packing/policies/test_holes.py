from __future__ import annotations

from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.packing.policies.holes import worth_of_holes

EXPECTED: Final[dict[str, tuple[dict[int, float], dict[int, float]]]] = {
    "no shares are expected: only whole cards have a value": ({}, {0: 0, 99: 0, 100: 1}),
    "whole cards alone say nothing of holes": ({100: 7}, {50: 0, 99: 0, 100: 1}),
    "halves": ({50: 3}, {49: 0, 50: 1 / 2, 99: 1 / 2, 100: 1}),
    "what is left beside a large share is worth nothing where nothing fits": ({81: 5}, {19: 0, 80: 0, 81: 1}),
    "nor where too many such holes are left over for the few that fit": ({81: 50, 16: 1}, {16: 0, 19: 0, 81: 1}),
    "with enough of them each has its part": ({25: 8, 50: 1}, {24: 0, 25: 1 / 4, 50: 1 / 2, 75: 3 / 4}),
    "thirds": ({33: 1}, {33: 1 / 3, 66: 2 / 3, 99: 1}),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_hole_is_worth_the_most_valuable_set_that_fits(name: str) -> None:
    demand, worth = EXPECTED[name]
    found = worth_of_holes(demand)
    assert {size: found[size] for size in worth} == pytest.approx(worth, abs=1e-6)


demands = st.dictionaries(st.integers(1, 100), st.floats(0.01, 1000), max_size=12)


@given(demands)
def test_a_larger_hole_is_worth_no_less_and_a_whole_card_is_worth_1(demand: dict[int, float]) -> None:
    worth = worth_of_holes(demand)
    assert len(worth) == 101 and worth[0] == 0 and worth[100] == 1
    assert all(less <= more + 1e-9 for less, more in pairwise(worth))


@given(demands, st.integers(0, 100), st.integers(0, 100))
def test_two_holes_are_worth_no_more_than_one_of_their_total_size(
    demand: dict[int, float], one: int, other: int
) -> None:
    worth = worth_of_holes(demand)
    assert one + other > 100 or worth[one] + worth[other] <= worth[one + other] + 1e-6


@given(demands)
def test_the_value_of_all_shares_is_a_lower_bound_of_the_needed_cards(demand: dict[int, float]) -> None:
    """What all shares are worth together is a bound of the cards that they need, and at least their size."""
    shares = {size: count for size, count in demand.items() if size < 100}
    worth = worth_of_holes(demand)
    bound = sum(worth[size] * count for size, count in shares.items())
    needed = sum(count / (100 // size) for size, count in shares.items())
    assert sum(size * count for size, count in shares.items()) / 100 <= bound * (1 + 1e-6) + 1e-9
    assert bound <= needed * (1 + 1e-6) + 1e-9
