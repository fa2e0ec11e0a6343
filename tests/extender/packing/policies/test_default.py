from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.packing.fleet import NodeShape
from extender.packing.placement import POLICIES, PackingPolicy
from extender.packing.workload_mix import PodClass, WorkloadMix
from halfcard.placing.card_usage import CardMode, CardRoom
from halfcard.placing.demand import Demand
from halfcard.placing.room import Room

from .rooms import CARD_MIB, CORES, MEMORY, chosen, half, mixes, room, rooms, share, whole

MIX: Final = WorkloadMix(
    (
        (PodClass(4000, 16000, 1, 25), 3.0),
        (PodClass(4000, 16000, 1, 50), 3.0),
        (PodClass(8000, 32000, 1, 100), 4.0),
        (PodClass(8000, 32000, 1, 100, ("x1",)), 1.0),
        (PodClass(64000, 256000, 8, 100), 0.25),
    )
)
FLEET: Final = (
    (NodeShape("A100", 2, CARD_MIB, CORES, MEMORY, 9.0), 10),
    (NodeShape("T4", 2, CARD_MIB, CORES, MEMORY, 4.0), 10),
    (NodeShape("X1", 8, CARD_MIB, CORES, MEMORY, 5.0), 4),
    (NodeShape("Y2", 8, CARD_MIB, CORES, MEMORY, 5.0), 10),
)
ONE_HALF: Final = CardRoom(CardMode.HALVES, 100, CARD_MIB, 1)
MEMORY_GONE: Final = CardRoom(CardMode.SHARED, 80, CARD_MIB // 10, 0)


def default(mix: WorkloadMix = MIX) -> PackingPolicy:
    return POLICIES["default"](mix, FLEET)


PLACES: Final[dict[str, tuple[list[Room], Demand, int]]] = {
    "a share is placed next to shares": ([room(100, 100), room(100, 50)], share(50), 1),
    "and fills a hole that no other pod would": ([room(75), room(60), room(100)], share(10), 1),
    "whole cards are left whole": ([room(100), room(60)], share(25), 1),
    "a whole card is taken where the rest is used": ([room(100, 100), room(100, 0)], whole(1), 0),
    "shares go to weak cards first": ([room(100, 100, model="A100"), room(100, 100, model="T4")], share(50), 1),
    "those in the middle before strong ones": (
        [room(100, 100, model="A100"), room(100, 100, model="Y2")],
        share(50),
        1,
    ),
    "of nodes that are alike the first is filled": ([room(100, 100), room(100, 100)], share(50), 0),
    "a half is placed next to a half": ([room(100, 100), room(100, ONE_HALF)], half(), 1),
    "cards without CPU for them are taken by pods that need none": (
        [room(100, 100, cpu_milli=64_000), room(100, 100, cpu_milli=2000)],
        whole(1),
        1,
    ),
    "CPU is used where cards could not use all of it": (
        [room(100, 100, cpu_milli=16_000), room(100, 100, cpu_milli=90_000)],
        whole(1, cpu_milli=16_000),
        1,
    ),
    "cards that are asked for by name are left to those who ask": (
        [room(100, 100, model="X1"), room(100, 100, model="Y2")],
        whole(1),
        1,
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_pod_is_placed_where_the_least_value_is_lost(name: str) -> None:
    nodes, demand, expected = PLACES[name]
    assert chosen(default(), nodes, demand) == expected


def test_a_card_without_free_memory_is_worth_as_little_as_a_full_one() -> None:
    assert default().value(room(MEMORY_GONE)) == default().value(room(10))


def test_the_expected_pods_decide_which_hole_is_worth_keeping() -> None:
    large = default(WorkloadMix(((PodClass(0, 0, 1, 70), 1.0),)))
    small = default(WorkloadMix(((PodClass(0, 0, 1, 35), 1.0),)))
    nodes = [room(70), room(60)]
    assert chosen(large, nodes, share(35)) == 1
    assert chosen(small, nodes, share(25)) == 1
    assert chosen(small, [room(35), room(60)], share(25)) == 1


def test_a_memory_request_counts_as_its_part_of_the_usual_card() -> None:
    by_cores = default(WorkloadMix(((PodClass(0, 0, 1, 50), 1.0),)))
    by_memory = default(WorkloadMix(((PodClass(0, 0, 1, 0, (), CARD_MIB // 2), 1.0),)))
    for left in range(101):
        assert by_cores.value(room(left)) == by_memory.value(room(left))


# --- nodes for pods that want several cards ---------------------------------------------------------------------------

IDLE: Final = room(*[100] * 8)
NEARLY_IDLE: Final = room(*[100] * 7, 0)
FULL: Final = room(*[0] * 8)


def test_no_node_is_reserved_while_there_are_plenty() -> None:
    policy = default()
    assert policy.adapted([IDLE] * 50) is policy


def test_the_last_idle_nodes_are_reserved() -> None:
    policy = default().adapted([IDLE, NEARLY_IDLE, *[FULL] * 30])
    assert chosen(policy, [IDLE, room(*[100] * 4, *[0] * 4)], whole(1)) == 1
    assert chosen(policy, [IDLE, NEARLY_IDLE], whole(1)) == 1


def test_a_node_without_enough_cpu_for_wide_pods_is_not_reserved() -> None:
    policy = default().adapted([IDLE, NEARLY_IDLE, *[FULL] * 30])
    spent = room(*[100] * 8, cpu_milli=20_000)
    assert chosen(policy, [IDLE, spent], whole(1)) == 1


def test_scarcity_ends_only_when_there_is_clearly_more() -> None:
    def is_reserved(policy: PackingPolicy) -> bool:
        return policy.value(IDLE) > default().value(IDLE)

    few = next(
        count for count in range(40, 0, -1) if is_reserved(default().adapted([IDLE] * count + [FULL] * (40 - count)))
    )
    scarce = default().adapted([IDLE] * few + [FULL] * (40 - few))
    one_more = [IDLE] * (few + 1) + [FULL] * (39 - few)
    assert is_reserved(scarce.adapted(one_more)) and not is_reserved(default().adapted(one_more))
    assert scarce.adapted(one_more) is scarce
    assert not is_reserved(scarce.adapted([IDLE] * 40))


# --- laws -------------------------------------------------------------------------------------------------------------


@given(mixes, rooms, st.randoms(use_true_random=False))
def test_the_order_of_the_cards_does_not_matter(mix: WorkloadMix, of: Room, random: st.DataObject) -> None:
    shuffled = list(of.left)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    policy = default(mix)
    assert policy.value(of.after(tuple(shuffled))) == pytest.approx(policy.value(of))


@given(mixes, rooms)
def test_the_value_is_finite_for_any_mix_and_any_room(mix: WorkloadMix, of: Room) -> None:
    policy = default(mix).adapted([of])
    assert abs(policy.value(of)) < 10_000


def test_gains_within_rounding_errors_rank_alike() -> None:
    assert default().rank(-1e-12) == default().rank(0) > default().rank(-0.01)


def test_no_node_is_reserved_where_cpu_is_exhausted_before_cards() -> None:
    spent = room(*[100] * 4, *[0] * 4, cpu_milli=0)
    policy = default()
    assert policy.adapted([IDLE, *[FULL] * 30]) is not policy
    assert policy.adapted([IDLE, *[spent] * 30]) is policy


def test_no_node_is_reserved_for_pods_that_it_could_never_take() -> None:
    impossible = WorkloadMix(((PodClass(4000, 16000, 1, 100), 40.0), (PodClass(500_000, 16000, 8, 100), 1.0)))
    policy = default(impossible)
    assert policy.adapted([IDLE, *[FULL] * 30]).value(IDLE) == policy.value(IDLE)


def test_whole_cards_are_worth_most_without_expected_pods() -> None:
    assert chosen(default(WorkloadMix(())), [room(100), room(60)], share(50)) == 1
