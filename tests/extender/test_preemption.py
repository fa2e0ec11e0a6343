from __future__ import annotations

import json
from itertools import combinations
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from extender.preemption import Victims, extend_victims, fewest_victims, of_lower_priority
from extender.quota_limits import BudgetUsage, QuotaLimits
from extender.scheduler_api import wire
from extender.scheduler_api.verbs import preempt
from extender.state import State
from halfcard import names
from halfcard.cards import Card
from halfcard.inventory import write_inventory
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import fits
from halfcard.placing.node_usage import usage_of_pods
from halfcard.placing.pod_facts import PodFacts, read_facts
from halfcard.pod.stored_pod import StoredPod
from halfcard.quota.budgets import Budget, read_budget
from halfcard.quota.ledger import Ledger
from tests.builders import PodBuilder, pod

from .populated import CARD_MIB, node, state_of, stored

UNIT = 256


def share(name: str, cores: int, mib: int = 4 * UNIT) -> PodBuilder:
    return pod(name).asks(core=cores, memory=mib // UNIT)


def on(card: int, asking: PodBuilder, priority: int = 0) -> StoredPod:
    return stored(asking, on="gpu1", cards=[f"gpu1-{card}"], priority=priority)


def on_two(first: int, second: int, name: str) -> StoredPod:
    asking = pod(name).asks(gpu=2, gpucores=30, gpumem=1000)
    return stored(asking, on="gpu1", cards=[f"gpu1-{first}", f"gpu1-{second}"])


def wanting(asking: PodBuilder, priority: int = 100) -> StoredPod:
    return stored(asking, priority=priority)


CASES = {
    "it fits already": (1, [on(0, share("a", 30))], wanting(share("new", 30)), set()),
    "one of two is enough, and the less important one is evicted": (
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
    "two pods on two cards each rather than three on as many": (
        4,
        [
            on(0, share("a", 90)),
            *[on(1, share(name, 50)) for name in "be"],
            *[on_two(2, 3, name) for name in "cd"],
        ],
        wanting(pod("new").asks(gpu=2)),
        {"c", "d"},
    ),
    "halves leave the card before it is shared": (
        1,
        [on(0, pod("h1").asks(sgpu=1)), on(0, pod("h2").asks(sgpu=1))],
        wanting(share("new", 10)),
        {"h1", "h2"},
    ),
    "without records the guessed cards of the remaining pods change": (
        2,
        [stored(share(name, 60), on="gpu1") for name in ("a", "b")],
        wanting(pod("new").asks(gpu=1)),
        {"a"},
    ),
    "equals are left alone": (1, [on(0, share("a", 90), priority=100)], wanting(share("new", 30)), None),
    "the important are left alone": (1, [on(0, share("a", 90), priority=101)], wanting(share("new", 30)), None),
    "no eviction makes room on a card that is too small": (
        1,
        [on(0, share("a", 10))],
        wanting(share("new", 10, 2 * CARD_MIB)),
        None,
    ),
    "a pod without cards is no victim": (
        1,
        [stored(pod("idle").container(), on="gpu1"), on(0, share("a", 90))],
        wanting(share("new", 30)),
        {"a"},
    ),
}


@pytest.mark.parametrize(("cards", "pods", "asking", "expected"), CASES.values(), ids=CASES.keys())
def test_the_fewest_pods_of_lower_priority_are_evicted(
    cards: int, pods: list[StoredPod], asking: StoredPod, expected: set[str] | None
) -> None:
    state = state_of([node(cards=cards)], pods)
    victims = extend_victims(state.nodes()["gpu1"], state.pods_on("gpu1"), frozenset(), facts_of(state, asking))
    assert victims == expected


def test_the_victims_of_the_scheduler_are_kept_and_count() -> None:
    state = state_of([node(cards=2)], [on(0, share("a", 60)), on(1, share("b", 60)), on(1, share("c", 40))])
    asking = facts_of(state, wanting(pod("new").asks(gpu=1)))
    there, pods = state.nodes()["gpu1"], state.pods_on("gpu1")

    assert extend_victims(there, pods, frozenset({"a"}), asking) == frozenset({"a"})
    assert extend_victims(there, pods, frozenset({"b"}), asking) in (frozenset("ab"), frozenset("bc"))


# --- where a budget of a model or a pool is in the way

T4S: Final = read_budget(
    {"metadata": {"name": "gpu", "namespace": "ns", "uid": "u"}, "spec": {"byModel": {"T4": {"cores": 70}}}}
)


def limits_of(facts: PodFacts) -> QuotaLimits:
    """All of it is in use."""
    assert isinstance(T4S, Budget)
    full = Ledger(T4S.hard, is_ready=True, committed={"cores of model T4": 70})
    return QuotaLimits(facts.demand.needs, [BudgetUsage(T4S, full)])


def preempted(state: State, given: str, asking: StoredPod) -> dict[str, list[str]]:
    victims = {"gpu1": wire.MetaVictims([wire.MetaPod(uid) for uid in given.split()])}
    answer = json.loads(preempt(state, asking, victims, limits_of))["NodeNameToMetaVictims"]
    return {name: [each["UID"] for each in chosen["Pods"]] for name, chosen in answer.items()}


def elsewhere(asked: StoredPod) -> StoredPod:
    return replace(asked, metadata=replace(asked.meta, namespace="other"))


@pytest.mark.parametrize(
    ("tenant", "expected"),
    [
        (on(0, share("low", 70)), {"gpu1": ["low"]}),
        (stored(share("low", 70), on="gpu1"), {"gpu1": ["low"]}),
        (on(0, share("low", 60)), {}),
        (elsewhere(on(0, share("low", 70))), {}),
    ],
    ids=[
        "its own namespace gets it back",
        "unrecorded too",
        "too little of it",
        "others do not",
    ],
)
def test_no_victims_for_a_pod_that_a_budget_refuses(tenant: StoredPod, expected: dict[str, list[str]]) -> None:
    assert preempted(state_of([node()], [tenant]), "low", wanting(share("new", 70))) == expected


def test_victims_are_searched_on_cards_of_models_that_are_not_closed() -> None:
    cards = (Card(0, "T4", CARD_MIB, uuid="gpu1-0"), Card(1, "A100", CARD_MIB, uuid="gpu1-1"))
    mixed = node(annotations={names.INVENTORY: write_inventory(cards)})
    state = state_of([mixed], [on(0, share("t4", 70)), on(1, share("a1", 50)), on(1, share("a2", 50))])
    assert preempted(state, "", wanting(share("new", 80))) == {"gpu1": ["a1", "a2"]}


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
@given(crowds, st.one_of(demands, several), st.integers(0, 3))
def test_no_smaller_set_of_victims_is_enough(
    crowd: list[tuple[int, int, int, int]], asking: PodBuilder, priority: int
) -> None:
    state, demand = crowded(crowd), read_facts(stored(asking), state_of([]).dialects).demand
    pods = state.pods_on("gpu1")
    spare = of_lower_priority(priority, pods)
    found = fewest_victims(state.nodes()["gpu1"], pods, spare, demand)
    smallest = next(
        (
            size
            for size in range(len(spare) + 1)
            for chosen in combinations(spare, size)
            if would_fit(state, frozenset(each.uid for each in chosen), demand)
        ),
        None,
    )
    assert (None if found is None else len(found)) == smallest


@settings(max_examples=60)
@given(crowds, st.one_of(demands, several), st.integers(0, 3))
def test_the_pod_fits_without_the_victims_and_none_of_them_is_unnecessary(
    crowd: list[tuple[int, int, int, int]], asking: PodBuilder, priority: int
) -> None:
    state, demand = crowded(crowd), read_facts(stored(asking), state_of([]).dialects).demand
    pods = state.pods_on("gpu1")
    spare = {each.uid for each in of_lower_priority(priority, pods)}
    found = fewest_victims(state.nodes()["gpu1"], pods, of_lower_priority(priority, pods), demand)
    if found is None:
        assert not would_fit(state, frozenset(spare), demand)
    else:
        assert found <= spare and would_fit(state, found, demand)
        assert not any(would_fit(state, found - {uid}, demand) for uid in found)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6), st.integers(1, 4))
def test_no_smaller_set_is_enough_where_pods_use_several_cards(pairs: list[tuple[int, int]], cards: int) -> None:
    pods = [on_two(*pair, f"p{at}") for at, pair in enumerate(pairs) if pair[0] != pair[1]]
    state = state_of([node(cards=4)], pods)
    demand = facts_of(state, stored(pod("new").asks(gpu=cards))).demand
    spare = state.pods_on("gpu1")
    found = fewest_victims(state.nodes()["gpu1"], spare, spare, demand)
    assert found is not None
    smaller = (frozenset(each.uid for each in chosen) for chosen in combinations(spare, max(len(found) - 1, 0)))
    assert not found or not any(would_fit(state, chosen, demand) for chosen in smaller)


def crowded(crowd: list[tuple[int, int, int, int]]) -> State:
    pods = [on(card, share(f"p{at}", cores, units * UNIT), rank) for at, (card, cores, units, rank) in enumerate(crowd)]
    return state_of([node(cards=2)], pods)


def would_fit(state: State, without: Victims, demand: Demand) -> bool:
    staying = [each.bound() for each in state.pods_on("gpu1") if each.uid not in without]
    return fits(usage_of_pods(state.nodes()["gpu1"], staying).room, demand)


def facts_of(state: State, asking: StoredPod) -> PodFacts:
    return read_facts(asking, state.dialects)
