"""What a seed draws: the published method step by step."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.go_random import GoRandom
from simulation.workload import ReplayWorkload, milli_of

from .trace import workload

BASE = workload()


def test_pods_are_sorted_shuffled_and_drawn_again_below_the_target() -> None:
    random = GoRandom(42)
    random.int63()
    pods = sorted(BASE.pods, key=lambda pod: pod.name)
    base = list(pods)
    random.shuffle(pods)
    while milli_of(pods) + (more := base[random.intn(len(base))]).milli <= 3 * BASE.capacity_milli:
        pods.append(more)
    order = random.perm(len(BASE.nodes))

    drawn = BASE.drawn(42, 3.0)

    assert list(drawn.pods) == pods and len(pods) > len(base)
    assert [node.name for node in drawn.nodes] == [BASE.nodes[at].name for at in order]


def test_the_order_of_the_rows_does_not_matter() -> None:
    assert ReplayWorkload(BASE.nodes, BASE.pods[::-1]).drawn(7, 1.3) == BASE.drawn(7, 1.3)


def test_above_the_target_pods_are_left_out_at_random() -> None:
    drawn = BASE.drawn(42, 0.2)
    assert milli_of(drawn.pods) <= 0.2 * BASE.capacity_milli < milli_of(BASE.pods)
    assert not Counter(drawn.pods) - Counter(BASE.pods)


@given(seed=st.integers(-(2**63), 2**63 - 1), tune=st.floats(0.05, 4))
def test_the_same_seed_draws_the_same_and_comes_close_to_the_target(seed: int, tune: float) -> None:
    drawn = BASE.drawn(seed, tune)
    largest = max(pod.milli for pod in BASE.pods)
    assert tune * BASE.capacity_milli - largest - 1 <= milli_of(drawn.pods) <= tune * BASE.capacity_milli
    assert drawn == BASE.drawn(seed, tune)
    assert Counter(drawn.nodes) == Counter(BASE.nodes)


def test_pods_that_use_no_card_are_drawn_once_each() -> None:
    bare = ReplayWorkload(BASE.nodes, tuple(pod for pod in BASE.pods if not pod.milli))
    assert bare.pods
    assert Counter(bare.drawn(1, 1.3).pods) == Counter(bare.pods)


@pytest.mark.parametrize("seed", [1, 2])
def test_other_seeds_draw_other_orders(seed: int) -> None:
    assert BASE.drawn(seed, 1.3) != BASE.drawn(42, 1.3)
