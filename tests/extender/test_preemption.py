from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.preemption import Victims, below, extended, fewest
from extender.state import State
from halfcard.placing.demand import Demand
from halfcard.placing.facts import Facts, read_facts
from halfcard.placing.holding import hold
from halfcard.placing.layouts import possible
from halfcard.stored import StoredPod
from tests.builders import PodBuilder, pod

from .populated import CARD_MIB, node, state_of, stored

UNIT = 256


def share(name: str, cores: int, mib: int = 4 * UNIT) -> PodBuilder:
    return pod(name).asks(core=cores, memory=mib // UNIT)


def on(card: int, asking: PodBuilder, priority: int = 0) -> StoredPod:
    return stored(asking, on="gpu1", cards=[f"gpu1-{card}"], priority=priority)


def wanting(asking: PodBuilder, priority: int = 100) -> StoredPod:
    return stored(asking, priority=priority)


CASES = {
    "it fits already": (1, [on(0, share("a", 30))], wanting(share("new", 30)), set()),
    "one of two is enough, and the less important goes": (
        1,
        [on(0, share("dear", 50), priority=9), on(0, share("cheap", 50))],
        wanting(share("new", 50)),
        {"cheap"},
    ),
    "one that is large rather than two that are small": (
        1,
        [on(0, share("s1", 20)), on(0, share("s2", 20)), on(0, share("large", 60), priority=9)],
        wanting(share("new", 50)),
        {"large"},
    ),
    "two of three, not the whole card": (
        1,
        [on(0, share("a", 20)), on(0, share("b", 40)), on(0, share("c", 40))],
        wanting(share("new", 70)),
        {"b", "c"},
    ),
    "the card with fewer tenants is cleared for a whole one": (
        2,
        [on(0, share("a", 20)), on(0, share("b", 20)), on(1, share("c", 90))],
        wanting(pod("new").asks(gpu=1)),
        {"c"},
    ),
    "one pod on two cards rather than two pods on two": (
        4,
        [
            on(0, pod("x").asks(gpu=1)),
            on(1, pod("y").asks(gpu=1)),
            stored(pod("both").asks(gpu=2), on="gpu1", cards=["gpu1-2", "gpu1-3"]),
        ],
        wanting(pod("new").asks(gpu=2)),
        {"both"},
    ),
    "halves leave the card before it is shared": (
        1,
        [on(0, pod("h1").asks(sgpu=1)), on(0, pod("h2").asks(sgpu=1))],
        wanting(share("new", 10)),
        {"h1", "h2"},
    ),
    "where nobody wrote a card down, the others move up in our guess": (
        2,
        [stored(share(name, 60), on="gpu1") for name in ("a", "b")],
        wanting(pod("new").asks(gpu=1)),
        {"a"},
    ),
    "equals are left alone": (1, [on(0, share("a", 90), priority=100)], wanting(share("new", 30)), None),
    "the important are left alone": (1, [on(0, share("a", 90), priority=101)], wanting(share("new", 30)), None),
    "nobody could make room on a card that is too small": (
        1,
        [on(0, share("a", 10))],
        wanting(share("new", 10, 2 * CARD_MIB)),
        None,
    ),
    "a pod without cards is in nobody's way": (
        1,
        [stored(pod("idle").container(), on="gpu1"), on(0, share("a", 90))],
        wanting(share("new", 30)),
        {"a"},
    ),
}


@pytest.mark.parametrize(("cards", "pods", "asking", "expected"), CASES.values(), ids=CASES.keys())
def test_the_fewest_pods_of_lower_priority_go(
    cards: int, pods: list[StoredPod], asking: StoredPod, expected: set[str] | None
) -> None:
    state = state_of([node(cards=cards)], pods)
    victims = extended(state.nodes()["gpu1"], state.pods_on("gpu1"), frozenset(), facts_of(state, asking))
    assert victims == expected


def test_what_the_scheduler_has_chosen_goes_in_any_case_and_is_made_use_of() -> None:
    state = state_of([node(cards=2)], [on(0, share("a", 60)), on(1, share("b", 60)), on(1, share("c", 40))])
    asking = facts_of(state, wanting(pod("new").asks(gpu=1)))
    there, pods = state.nodes()["gpu1"], state.pods_on("gpu1")

    assert extended(there, pods, frozenset({"a"}), asking) == frozenset({"a"})
    assert extended(there, pods, frozenset({"b"}), asking) in (frozenset("ab"), frozenset("bc"))


# --- laws against every set there is

shares = st.tuples(st.integers(0, 1), st.sampled_from([10, 20, 30, 50, 70]), st.integers(1, 40), st.integers(0, 3))
crowds = st.lists(shares, max_size=6)
demands = st.one_of(
    st.builds(
        lambda cores, units: share("new", cores, units * UNIT), st.sampled_from([20, 40, 80]), st.integers(1, 60)
    ),
    st.sampled_from([pod("new").asks(gpu=1), pod("new").asks(sgpu=1)]),
)
several = st.sampled_from([pod("new").asks(gpu=2), pod("new").asks(sgpu=2), share("new", 60).asks(core=60, memory=4)])


@settings(max_examples=60)
@given(crowds, demands, st.integers(0, 3))
def test_for_one_card_no_smaller_number_would_do(
    crowd: list[tuple[int, int, int, int]], asking: PodBuilder, priority: int
) -> None:
    state, demand = crowded(crowd), read_facts(stored(asking), state_of([]).dialects).demand
    pods = state.pods_on("gpu1")
    spare = below(priority, pods)
    found = fewest(state.nodes()["gpu1"], pods, spare, demand)
    smallest = next(
        (
            size
            for size in range(len(spare) + 1)
            for chosen in combinations(spare, size)
            if fits(state, frozenset(each.uid for each in chosen), demand)
        ),
        None,
    )
    assert (None if found is None else len(found)) == smallest


@settings(max_examples=60)
@given(crowds, st.one_of(demands, several), st.integers(0, 3))
def test_the_victims_make_room_and_none_of_them_goes_for_nothing(
    crowd: list[tuple[int, int, int, int]], asking: PodBuilder, priority: int
) -> None:
    state, demand = crowded(crowd), read_facts(stored(asking), state_of([]).dialects).demand
    pods = state.pods_on("gpu1")
    spare = {each.uid for each in below(priority, pods)}
    found = fewest(state.nodes()["gpu1"], pods, below(priority, pods), demand)
    if found is None:
        assert not fits(state, frozenset(spare), demand)
    else:
        assert found <= spare and fits(state, found, demand)
        assert not any(fits(state, found - {uid}, demand) for uid in found)


def crowded(crowd: list[tuple[int, int, int, int]]) -> State:
    pods = [on(card, share(f"p{at}", cores, units * UNIT), rank) for at, (card, cores, units, rank) in enumerate(crowd)]
    return state_of([node(cards=2)], pods)


def fits(state: State, without: Victims, demand: Demand) -> bool:
    staying = [each.bound() for each in state.pods_on("gpu1") if each.uid not in without]
    return possible(hold(state.nodes()["gpu1"], staying).room, demand)


def facts_of(state: State, asking: StoredPod) -> Facts:
    return read_facts(asking, state.dialects)
