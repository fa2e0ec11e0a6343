"""Which of two idle nodes takes pods, by the strength of their cards."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pytest

from extender.packing.fleet import fleet_of
from extender.packing.placement import POLICIES
from extender.packing.strength import Strengths
from extender.packing.workload_mix import USUAL
from halfcard.cards import Card, Node
from halfcard.pod.card_preferences import NOTHING_WANTED, CardPreferences
from simulation.simulated_cluster import SimulatedCluster
from tests.builders import pod
from tests.halfcard.placing.examples import demand_of

T4: Final = "Tesla T4"
A100: Final = "NVIDIA A100-SXM4-80GB"
MIB: Final = {
    T4: 15109,
    "NVIDIA GeForce RTX 2080 Ti": 11264,
    "NVIDIA GeForce RTX 3090": 24576,
    "NVIDIA A10": 23028,
    "Tesla V100-SXM2-32GB": 32768,
    A100: 81920,
    "NVIDIA H100 80GB HBM3": 81559,
    "G2": 16384,
    "G3": 40960,
}
PAIRS: Final = (
    (T4, A100),
    (T4, "Tesla V100-SXM2-32GB"),
    ("NVIDIA GeForce RTX 2080 Ti", "Tesla V100-SXM2-32GB"),
    ("NVIDIA GeForce RTX 2080 Ti", "NVIDIA GeForce RTX 3090"),
    ("NVIDIA A10", A100),
    ("NVIDIA A10", "NVIDIA H100 80GB HBM3"),
    ("G2", "G3"),
)
SHARES: Final = {
    "18 shares of 20 % and 2 GiB": (18, {"core": 20, "memory": 8}),
    "8 shares of half the cores": (8, {"core": 50, "memory": 4}),
    "4 halves": (4, {"sgpu": 1}),
}
Models = tuple[str, str]
"""The models of the two nodes, in their order."""

on_each_pair: Final = pytest.mark.parametrize("models", [each for pair in PAIRS for each in (pair, pair[::-1])])


def cards_taken(
    models: Models, count: int, asks: dict[str, Any], own: Strengths = (), wanted: CardPreferences = NOTHING_WANTED
) -> Counter[str]:
    """Returns how many of these pods the nodes of four cards took, by model."""
    nodes = [node(f"node-{at}", model) for at, model in enumerate(models)]
    cluster = SimulatedCluster(nodes, POLICIES["default"](USUAL, fleet_of(nodes, own)))
    demand = demand_of(pod().asks(**asks))._replace(wanted=wanted)
    placed = [cluster.arrive(demand) for _ in range(count)]
    return Counter(nodes[each.at].cards[0].model for each in placed if each is not None)


def node(name: str, model: str) -> Node:
    return Node(name, tuple([Card(at, model, MIB[model]) for at in range(4)]), cpu_milli=64_000, memory_mib=512 * 1024)


def weak_and_strong(models: Models) -> Models:
    return models if models in PAIRS else models[::-1]


@on_each_pair
@pytest.mark.parametrize("shares", SHARES)
def test_shares_and_halves_take_the_weaker_card(shares: str, models: Models) -> None:
    count, asks = SHARES[shares]
    weak, _ = weak_and_strong(models)
    assert cards_taken(models, count, asks) == {weak: count}


def test_a_share_takes_the_weaker_card_though_it_is_a_slightly_larger_part_of_its_memory() -> None:
    assert cards_taken((A100, T4), 6, {"core": 30, "memory": 20}) == {T4: 6}


def test_shares_that_find_no_weak_card_take_a_strong_one() -> None:
    assert cards_taken((A100, T4), 25, {"core": 20, "memory": 8}) == {T4: 20, A100: 5}


def test_the_settings_reverse_the_order() -> None:
    own = (("a100", 1.0), ("t4", 9.0))
    assert cards_taken((A100, T4), 18, {"core": 20, "memory": 8}, own) == {A100: 18}


@on_each_pair
def test_whole_cards_take_the_stronger_of_the_models_that_their_pod_names(models: Models) -> None:
    weak, strong = weak_and_strong(models)
    both = CardPreferences(models=tuple(sorted(each.lower() for each in models)))
    assert cards_taken(models, 4, {"core": 100}, wanted=both) == {strong: 4}
    assert cards_taken(models, 4, {"core": 20}, wanted=both) == {weak: 4}
