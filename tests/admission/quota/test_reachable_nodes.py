"""Where a pod may run, for budgets that tell nodes apart."""

from __future__ import annotations

from typing import Final

from admission.quota.reachable_nodes import ReachableNodes
from halfcard.cards import Card, Node
from halfcard.cluster_view import ClusterView
from halfcard.placing.demand import Demand
from tests.halfcard.placing.examples import demand

CARDS: Final = Node("ours", (Card(0, "T4", 16384),), pool="lab")
CLUSTER: Final = ClusterView((CARDS, Node("dra1", pool="training"), Node("cpu1", pool="web")))
MIXED: Final = ClusterView(CLUSTER.nodes, driver_nodes=frozenset({"ours", "dra1"}))


def pools(cluster: ClusterView, asking: Demand) -> list[str]:
    return sorted(place.pool for place in ReachableNodes(lambda: cluster).of(asking))


def test_whole_cards_reach_the_nodes_of_a_driver_too() -> None:
    assert pools(CLUSTER, demand(gpu=1)) == ["lab"]
    assert pools(MIXED, demand(gpu=1)) == ["lab", "training"]


def test_other_claims_reach_only_nodes_with_cards_of_ours() -> None:
    assert pools(MIXED, demand(core=100)) == ["lab"]
