"""Combines the state of this node: its cards, their slices, its pods, and what it offers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from halfcard import names
from halfcard.cards import Card, Node
from halfcard.cluster_view import without_cordoned
from halfcard.isolation.mode import ChosenMode, chosen_mode

from .adoption.adopted_containers import AdoptedPods, find_adopted
from .advertise.supply import OfferRules, Supply, held_only, supply
from .advertise.time_slicing import IN_ONE_PIECE, TimeSlices, chosen
from .card_watch import CardWatch
from .kubelet.checkpoint import Checkpoint
from .node_pods import NodePods, WatchedObject
from .options import AgentOptions
from .pod_status import NodePod
from .usage.meter import GrantedCards
from .usage.usage_report import StartedPod


class NodeView:
    """The view; it computes on demand.

    Attributes:
        slicing: the last usable configuration.
        slicing_problems: what is wrong with the time-slicing configuration, a sentence each.
    """

    def __init__(
        self,
        name: str,
        options: AgentOptions,
        *,
        cards: CardWatch,
        pods: NodePods,
        node: WatchedObject,
        config: WatchedObject | None,
        checkpoint: Checkpoint,
        closed_to_shares: Callable[[Card], str],
    ) -> None:
        self.slicing: TimeSlices = IN_ONE_PIECE
        self.slicing_problems: tuple[str, ...] = ()
        self._name = name
        self._options = options
        self._cards = cards
        self._pods = pods
        self._node = node
        self._config = config
        self._checkpoint = checkpoint
        self._closed_to_shares = closed_to_shares

    def node(self) -> Node:
        """Returns the node with its cards now; cordoned cards included, since pods may hold them."""
        return Node(self._name, self._cards.cards(self.slicing.replicas), self.slicing.resource)

    def offered(self) -> Node:
        """Returns the node of the inventory: without shares on cards where they must be held and cannot be.

        The totals stay, because whole cards are requested in the same resources; the extender refuses shares.
        """
        node = self.node()
        return replace(node, cards=tuple([replace(card, not_held=self._closed_to_shares(card)) for card in node.cards]))

    def granted_cards(self) -> GrantedCards:
        node = self.node()
        return GrantedCards(node, self._pods.usage(node), tuple(self._started_pods()))

    def _started_pods(self) -> Iterator[StartedPod]:
        for pod, facts in self._pods.with_claims():
            yield StartedPod(facts, _ids(pod, "container_statuses"), _ids(pod, "init_container_statuses"))

    def supply(self) -> Supply:
        asks = [facts.asks for _, facts in self._pods.with_claims()]
        node = self.node()
        room = self._pods.usage(node).room
        room = replace(room, cards=without_cordoned(room.cards, self._annotation(names.CORDONED_CARDS)))
        found, adopted = supply(room, asks, self._offer_rules()), self.adopted()
        return held_only(found, asks, adopted.problem) if any(adopted) else found

    def adopted(self) -> AdoptedPods:
        """Returns the live pods that another device plugin started."""
        return find_adopted(self._checkpoint.entries() or (), self._pods.unfinished() or {}, self.node())

    def _offer_rules(self) -> OfferRules:
        return OfferRules(self._options.resources, self._options.dialects, self._options.hami_split)

    def read_slicing(self) -> None:
        """Reads the ConfigMap and the node's label again; an unusable configuration changes nothing."""
        if self._config is None:
            return
        data: Mapping[str, Any] = (self._config.object or {}).get("data") or {}
        found = chosen(data, self._options.slicing_default, self._label(names.TIME_SLICING_LABEL))
        self.slicing_problems = found.problems
        self.slicing = found.slicing or self.slicing

    def isolation(self) -> ChosenMode:
        """Returns whether this node holds containers to their shares."""
        return chosen_mode(self._options.isolation, self._label(names.ISOLATION_LABEL))

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
