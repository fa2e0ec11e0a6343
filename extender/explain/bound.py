"""Explains a bound pod: its cards, who recorded them and when, and the other pods on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from halfcard.placing.card_usage import CardMode
from halfcard.placing.node_usage import NodeUsage, Share
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.records import TIME_SUFFIXES, name_of, recorder

from ..state import State
from .inspection import CardHolder, card_holder


@dataclass(frozen=True, slots=True)
class HeldCard:
    index: int
    name: str
    model: str
    mode: CardMode
    neighbours: tuple[CardHolder, ...]


@dataclass(frozen=True, slots=True)
class ContainerCards:
    """The cards of one container."""

    container: str
    cards: tuple[HeldCard, ...]


@dataclass(frozen=True, slots=True)
class BoundPod:
    """The explanation of a bound pod.

    Attributes:
        recorded_by: the system whose annotations name the cards; empty where they are our guess.
        since: when they were chosen; empty where the record has no time.
    """

    node: str
    recorded_by: str
    since: str
    grants: tuple[ContainerCards, ...]


def explain_bound(state: State, pod: PodFacts) -> BoundPod:
    holding, node = state.usage(pod.node), state.nodes().get(pod.node)
    share = holding.shares.get(pod.uid) if holding is not None else None
    if holding is None or node is None or share is None:
        return BoundPod(pod.node, "", "", ())
    by = recorder(pod.owned, pod.node, pod.containers, pod.demand.needs) if share.recorded else ""
    return BoundPod(pod.node, by, _since(pod.owned) if share.recorded else "", _grants(state, pod, holding, share))


def _since(record: Mapping[str, str]) -> str:
    """Reads the time of the choice, in nanoseconds, from the record of another system; ours is written next to one."""
    written = [value for key, value in record.items() if key.endswith(TIME_SUFFIXES) and value.isdecimal()]
    try:
        return datetime.fromtimestamp(int(written[0]) / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if written else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _grants(state: State, pod: PodFacts, holding: NodeUsage, share: Share) -> tuple[ContainerCards, ...]:
    others = [each for each in state.pods_on(pod.node) if each.uid != pod.uid and each.uid in holding.shares]
    others.sort(key=lambda each: each.title)
    laid = zip(pod.containers, share.layout, strict=True)
    return tuple(
        ContainerCards(name, tuple(_held(holding, at, others) for at in positions)) for name, positions in laid
    )


def _held(holding: NodeUsage, at: int, others: list[PodFacts]) -> HeldCard:
    card, shares = holding.room.cards[at], holding.shares
    neighbours = [
        card_holder(card, each, shares[each.uid].uses[at], recorded=shares[each.uid].recorded)
        for each in others
        if at in shares[each.uid].uses
    ]
    return HeldCard(card.index, name_of(card), card.model, holding.room.left[at].mode, tuple(neighbours))
