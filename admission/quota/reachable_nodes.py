"""The kinds of nodes that a pod may run on, as far as budgets by model and pool tell nodes apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from halfcard.claims import Need
from halfcard.cluster_view import NOTHING_KNOWN, ClusterView
from halfcard.pod.card_preferences import CardPreferences
from halfcard.quota.pod_location import NodeKind, PodLocation, kind_of, whole_place


class ReachableNodes:
    def __init__(self, cluster: Callable[[], ClusterView]) -> None:
        self._cluster = cluster
        self._of = NOTHING_KNOWN
        self._kinds: frozenset[NodeKind] = frozenset()

    def of(self, needs: tuple[Need, ...], wanted: CardPreferences) -> Iterator[PodLocation]:
        """All of it on one model, in each pool that has cards of it; none where no node is known."""
        for kind in self._known():
            for model in kind.models:
                if wanted.allows_model(model):
                    yield whole_place(NodeKind(kind.pool, (model,)), needs)

    def _known(self) -> frozenset[NodeKind]:
        """Thousands of nodes are looked at again only when one has changed."""
        now = self._cluster()
        if now is not self._of:
            self._of, self._kinds = now, frozenset(kind_of(node) for node in now.nodes if node.cards)
        return self._kinds
