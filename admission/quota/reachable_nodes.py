"""Finds the kinds of nodes that a pod may run on: budgets by model and pool distinguish no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from halfcard.claims import Need
from halfcard.cluster_view import NOTHING_KNOWN, ClusterView
from halfcard.pod.card_preferences import CardPreferences
from halfcard.quota.pod_location import NodeKind, PodLocation, kind_of, widest_location


class ReachableNodes:
    def __init__(self, cluster: Callable[[], ClusterView]) -> None:
        self._cluster = cluster
        self._of = NOTHING_KNOWN
        self._kinds: frozenset[NodeKind] = frozenset()

    def of(self, needs: tuple[Need, ...], wanted: CardPreferences) -> Iterator[PodLocation]:
        """Yields the pod on one card model in one pool, for each pair that exists; nothing where no node is known."""
        for kind in self._known():
            for model in kind.models:
                if wanted.allows_model(model):
                    yield widest_location(NodeKind(kind.pool, (model,)), needs)

    def _known(self) -> frozenset[NodeKind]:
        """Returns the kinds of all nodes, computed again only when a node has changed: there may be thousands."""
        now = self._cluster()
        if now is not self._of:
            self._of, self._kinds = now, frozenset(kind_of(node) for node in now.nodes if node.cards)
        return self._kinds
