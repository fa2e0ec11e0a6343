"""The numbers are those that Go's own math/rand printed for these seeds."""

from __future__ import annotations

import pytest

from bench.go_float64 import float64
from simulation.go_random import GoRandom

PRINTED = {
    0: (8717895732742165505, 4, 879, 116702506, 0.36758720663245853, [5, 1, 2, 4, 0, 3, 6]),
    1: (5577006791947779410, 7, 957, 939984059, 0.4246374970712657, [4, 1, 5, 0, 3, 2, 6]),
    42: (3440579354231278675, 7, 2, 448434750, 0.043818458599374305, [3, 5, 2, 6, 0, 1, 4]),
    -7: (747107023976529931, 8, 1090, 189665856, 0.301751104991933, [2, 4, 1, 3, 0, 5, 6]),
    2**31 - 1: (8717895732742165505, 4, 879, 116702506, 0.36758720663245853, [5, 1, 2, 4, 0, 3, 6]),
    123456789012345: (3737036971006415568, 7, 878, 990864337, 0.5042865255933255, [3, 0, 2, 6, 5, 1, 4]),
}


@pytest.mark.parametrize("seed", PRINTED)
def test_each_kind_of_number_equals_that_of_go(seed: int) -> None:
    random = GoRandom(seed)
    drawn = random.int63(), *(random.intn(n) for n in (10, 1213, 1 << 30)), float64(random), random.perm(7)
    assert drawn == PRINTED[seed]


MIXED = {
    0: ([3, 7, 4, 6, 1, 8, 0, 5, 2, 9], 7889720159334381738),
    1: ([1, 7, 4, 0, 9, 2, 3, 5, 8, 6], 9073571558697852035),
    42: ([2, 5, 7, 9, 6, 8, 1, 4, 0, 3], 2842653445761400053),
    -7: ([7, 3, 5, 2, 4, 1, 9, 8, 6, 0], 8474773142114974713),
}


@pytest.mark.parametrize("seed", MIXED)
def test_a_shuffle_and_five_thousand_numbers_after_it_equal_those_of_go(seed: int) -> None:
    random, cards, folded = GoRandom(seed), list(range(10)), 0
    random.shuffle(cards)
    for _ in range(5000):
        folded ^= random.int63()
    assert (cards, folded) == MIXED[seed]
