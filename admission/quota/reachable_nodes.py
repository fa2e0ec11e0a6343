"""Finds the kinds of nodes that a pod may run on: budgets by model and pool distinguish no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from halfcard.cluster_view import NOTHING_KNOWN, ClusterView
from halfcard.placing.demand import Demand
from halfcard.placing.driver_demand import may_go_to_driver
from halfcard.quota.pod_location import NodeKind, PodLocation, kind_of, widest_location


class ReachableNodes:
    def __init__(self, cluster: Callable[[], ClusterView]) -> None:
        self._cluster = cluster
        self._of = NOTHING_KNOWN
        self._kinds: frozenset[NodeKind] = frozenset()
        self._of_drivers: frozenset[NodeKind] = frozenset()

    def of(self, demand: Demand) -> Iterator[PodLocation]:
        """Yields the pod on one card model in one pool, for each pair that exists; nothing where no node is known."""
        self._refresh()
        for kind in self._kinds:
            for model in kind.models:
                if demand.wanted.allows_model(model):
                    yield widest_location(NodeKind(kind.pool, (model,)), demand.needs)
        for kind in self._of_drivers if may_go_to_driver(demand) else ():
            yield widest_location(kind, demand.needs)

    def _refresh(self) -> None:
        """Computes the kinds of all nodes again only when a node has changed: there may be thousands."""
        now = self._cluster()
        if now is not self._of:
            self._of = now
            self._kinds = frozenset(kind_of(node) for node in now.nodes if node.cards)
            without = [node for node in now.nodes if not node.cards and node.name in now.driver_nodes]
            self._of_drivers = frozenset(map(kind_of, without))
