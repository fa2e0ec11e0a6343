"""Combines what is known of this node: its cards, their slices, the pods on it, and what is left to offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from halfcard import names
from halfcard.cards import Node
from halfcard.cluster_view import without_cordoned

from .adoption.adopted_containers import AdoptedPods, inherited
from .advertise.supply import OfferRules, Supply, held_alone, supply
from .advertise.time_slicing import IN_ONE_PIECE, TimeSlices, chosen
from .card_watch import CardWatch
from .kubelet.checkpoint import Checkpoint
from .node_pods import NodePods, WatchedObject
from .options import AgentOptions
from .pod_status import NodePod
from .usage.meter import GrantedCards
from .usage.usage_report import StartedPod


class NodeView:
    """A view that computes on demand.

    Attributes:
        slicing: the last usable configuration.
        told: what is wrong with the time-slicing configuration, a sentence each.
    """

    def __init__(
        self,
        name: str,
        agreed: AgentOptions,
        *,
        cards: CardWatch,
        pods: NodePods,
        node: WatchedObject,
        config: WatchedObject | None,
        checkpoint: Checkpoint,
    ) -> None:
        self.slicing: TimeSlices = IN_ONE_PIECE
        self.told: tuple[str, ...] = ()
        self._name = name
        self._agreed = agreed
        self._cards = cards
        self._pods = pods
        self._node = node
        self._config = config
        self._checkpoint = checkpoint

    def node(self) -> Node:
        """Returns the node with its cards as they are now; a card that people took out of use keeps its holders."""
        return Node(self._name, self._cards.cards(self.slicing.replicas), self.slicing.resource)

    def given(self) -> GrantedCards:
        node = self.node()
        return GrantedCards(node, self._pods.holding(node), tuple(self._tenants()))

    def _tenants(self) -> Iterator[StartedPod]:
        for pod, facts in self._pods.asking():
            yield StartedPod(facts, _ids(pod, "container_statuses"), _ids(pod, "init_container_statuses"))

    def supply(self) -> Supply:
        asks = [facts.asks for _, facts in self._pods.asking()]
        node = self.node()
        room = self._pods.holding(node).room
        room = replace(room, cards=without_cordoned(room.cards, self._annotation(names.CORDONED_CARDS)))
        found, inherited = supply(room, asks, self._serving()), self.inherited()
        return held_alone(found, asks, inherited.problem) if any(inherited) else found

    def inherited(self) -> AdoptedPods:
        """Returns what another plugin gave to live pods."""
        return inherited(self._checkpoint.given() or (), self._pods.living() or {}, self.node())

    def _serving(self) -> OfferRules:
        return OfferRules(self._agreed.resources, self._agreed.dialects, self._agreed.hami_split)

    def look_at_slicing(self) -> None:
        """Reads the ConfigMap and the node's label again; an unusable configuration changes nothing."""
        if self._config is None:
            return
        data: Mapping[str, Any] = (self._config.object or {}).get("data") or {}
        found = chosen(data, self._agreed.slicing_default, self._label(names.TIME_SLICING_LABEL))
        self.told = found.told
        self.slicing = found.slicing or self.slicing

    def runtime(self) -> str:
        """Returns the container runtime, such as containerd://2.1.4; empty while unknown."""
        info = (self._node.object or {}).get("status", {}).get("nodeInfo", {})
        return str(info.get("containerRuntimeVersion", ""))

    def _label(self, name: str) -> str:
        return str(self._metadata("labels").get(name, ""))

    def _annotation(self, name: str) -> str:
        return str(self._metadata("annotations").get(name, ""))

    def _metadata(self, field: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = (self._node.object or {}).get("metadata", {}).get(field) or {}
        return found


def _ids(pod: NodePod, field: str) -> dict[str, str]:
    statuses = getattr(pod.status, field) if pod.status is not None else ()
    return {status.name: status.container_id for status in statuses}
