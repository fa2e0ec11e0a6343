"""How ranks become scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.packing.placement import TOP, WORST, scores

RANKS = st.lists(st.sampled_from([WORST, -3, 0, 0.25, 1, 1.5, 7, 400]), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("ranks", "given_scores"),
    [
        ([], []),
        ([5], [10]),
        ([5, 5, 5], [10, 0, 0]),
        ([5, WORST, 5], [10, 0, 9]),
        ([0, 9], [0, 10]),
        ([0, 3.6, 9, 9], [0, 3, 10, 9]),
        ([-1.0, -0.5, WORST], [0, 10, 0]),
        ([WORST, WORST], [10, 0]),
    ],
)
def test_the_best_node_scores_10_and_others_by_their_distance(ranks: list[float], given_scores: list[int]) -> None:
    assert [*scores(ranks, "abcd"[: len(ranks)])] == given_scores


def test_the_first_by_name_of_equally_good_nodes_scores_10() -> None:
    assert [*scores([1, 1, 1, 0], ["n3", "n1", "n2", "n0"])] == [9, 10, 9, 0]
    assert [*scores([1, 1, 1], ["n3", "n1", "n2"])] == [0, 10, 0]


@given(RANKS)
def test_one_node_scores_10_and_a_higher_rank_never_scores_less(ranks: list[float]) -> None:
    found = scores(ranks, [f"n{at:02}" for at in range(len(ranks))])
    assert found.count(TOP) == 1
    assert ranks[found.index(TOP)] == max(ranks)
    assert max(score for score in found if score != TOP or len(found) == 1) <= TOP
    for one, its in zip(ranks, found, strict=True):
        assert all(its <= theirs for other, theirs in zip(ranks, found, strict=True) if one < other)
