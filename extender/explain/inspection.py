"""Shows which pods are on which cards, in Halfcard's JSON and in the format of gpushare's tools.

Half a card counts as half of its cores and memory, a time slice as its part of them, so that the used amounts add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from halfcard.cards import Card, Node
from halfcard.claims import WHOLE_CARD
from halfcard.placing.card_usage import CardMode, CardUse, parts_of, use_of_card, worth
from halfcard.placing.node_totals import Offer, totals
from halfcard.placing.node_usage import NodeUsage, usage_of_pods
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.records import name_of

from ..state import State


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount; `total` is None where it is unknown."""

    total: int | None
    used: int


@dataclass(frozen=True, slots=True)
class CardHolder:
    """A pod and what it uses of one card; `recorded` is False if the card is a guess."""

    namespace: str
    name: str
    uid: str
    mode: CardMode
    cores: int
    memory_mib: int
    parts: int
    recorded: bool

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class CardInspection:
    """One card; `parts` are its halves or time slices in its present mode."""

    index: int
    name: str
    model: str
    mode: CardMode
    cores: Amount
    memory_mib: Amount
    parts: Amount
    out_of_order: str
    pods: tuple[CardHolder, ...]


@dataclass(frozen=True, slots=True)
class NodeInspection:
    """One node; the names of all fields are JSON keys.

    Attributes:
        resources: those that the node publishes or its pods request.
        without_card: pods with claims that are on no card known to Halfcard, by namespace/name.
        doubts: inconsistencies, a sentence each.
        driver: the driver of Dynamic Resource Allocation that has its cards; empty for none.
    """

    name: str
    address: str
    cards: tuple[CardInspection, ...]
    resources: dict[str, Amount]
    without_card: tuple[str, ...]
    doubts: tuple[str, ...]
    driver: str = ""

    @property
    def pods(self) -> int:
        return len({pod.uid for card in self.cards for pod in card.pods}) + len(self.without_card)


def inspect(state: State, node: Node, table: Mapping[str, Offer]) -> NodeInspection:
    usage = state.usage(node.name) or usage_of_pods(node, ())
    pods = {facts.uid: facts for facts in state.pods_on(node.name)}
    return NodeInspection(
        node.name,
        node.address,
        tuple(_inspect_card(node, usage, pods, at) for at in range(len(node.cards))),
        _resources(node, usage, [facts.asks for facts in pods.values()], table),
        tuple(sorted(each.title for each in pods.values() if each.asks_for_cards and each.uid not in usage.shares)),
        usage.doubts,
        state.driver(node.name),
    )


def _resources(
    node: Node, usage: NodeUsage, held: list[Mapping[str, int]], table: Mapping[str, Offer]
) -> dict[str, Amount]:
    """Returns the resources that the node publishes or its pods request: each system has other names for a card."""
    used = {resource: sum(asks.get(resource, 0) for asks in held) for resource in table}
    shown = {resource: offer for resource, offer in table.items() if resource in node.published or used[resource]}
    found = totals(usage.room, held, shown)
    return {resource: Amount(found[resource], used[resource]) for resource in sorted(shown)}


def _inspect_card(node: Node, usage: NodeUsage, pods: Mapping[str, PodFacts], at: int) -> CardInspection:
    card, left = node.cards[at], usage.room.left[at]
    holders = [
        card_holder(card, pods[uid], share.uses[at], recorded=share.recorded)
        for uid, share in usage.shares.items()
        if at in share.uses and uid in pods
    ]
    taken = use_of_card(card, left)
    cores, mib = worth(card, taken)
    return CardInspection(
        card.index,
        name_of(card),
        card.model,
        left.mode,
        Amount(WHOLE_CARD, cores),
        Amount(card.memory_mib, mib),
        Amount(parts_of(card, left.mode), taken.parts),
        card.why_not,
        tuple(sorted(holders, key=lambda holder: (holder.namespace, holder.name))),
    )


def card_holder(card: Card, facts: PodFacts, use: CardUse, *, recorded: bool) -> CardHolder:
    cores, mib = worth(card, use)
    return CardHolder(facts.namespace, facts.name, facts.uid, use.mode, cores, mib, use.parts, recorded)


def inspect_json(state: State, node: Node, table: Mapping[str, Offer]) -> dict[str, Any]:
    """Returns the inspection as JSON."""
    found: dict[str, Any] = msgspec.to_builtins(inspect(state, node, table))
    return found


# --- the format of gpushare ------------------------------------------------------------------------------------------


def gpushare_json(state: State, nodes: Iterable[Node], unit_mib: int) -> dict[str, Any]:
    """Returns the answer of gpushare's extender, with memory in its unit."""
    return {"nodes": [gpushare_node_json(state, node, unit_mib) for node in nodes]}


def gpushare_node_json(state: State, node: Node, unit_mib: int) -> dict[str, Any]:
    devices = [_gpushare_device(card, unit_mib) for card in inspect(state, node, {}).cards]
    return {
        "name": node.name,
        "totalGPU": sum(device["totalGPU"] for device in devices),
        "usedGPU": sum(device["usedGPU"] for device in devices),
        "devs": devices,
    }


def _gpushare_device(card: CardInspection, unit_mib: int) -> dict[str, Any]:
    return {
        "id": card.index,
        "totalGPU": (card.memory_mib.total or 0) // unit_mib,
        "usedGPU": card.memory_mib.used // unit_mib,
        "pods": [
            {"name": pod.name, "namespace": pod.namespace, "usedGPU": pod.memory_mib // unit_mib} for pod in card.pods
        ],
    }
