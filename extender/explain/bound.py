"""Explains a bound pod: its cards, which system recorded them and when, and the other pods on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from halfcard import names
from halfcard.isolation.holding import in_words, read_holdings
from halfcard.placing.card_usage import LIMITED, CardMode, mode_of
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
    """The cards of one container; `held` says what holds it to its share, and is empty for one without limits."""

    container: str
    cards: tuple[HeldCard, ...]
    held: str = ""


@dataclass(frozen=True, slots=True)
class BoundPod:
    """The explanation of a bound pod.

    Attributes:
        recorded_by: our process or the other system that recorded the cards; empty if the cards are a guess.
        since: when the cards were chosen; empty if the record has no time.
    """

    node: str
    recorded_by: str
    since: str
    grants: tuple[ContainerCards, ...]


def explain_bound(state: State, pod: PodFacts) -> BoundPod:
    usage, node = state.usage(pod.node), state.nodes().get(pod.node)
    share = usage.shares.get(pod.uid) if usage is not None else None
    if usage is None or node is None or share is None:
        return BoundPod(pod.node, "", "", ())
    by = recorder(pod.owned, pod.node, pod.containers, pod.demand.needs) if share.recorded else ""
    return BoundPod(pod.node, by, _since(pod.owned) if share.recorded else "", _grants(state, pod, usage, share))


def explain_record(pod: PodFacts) -> BoundPod:
    """Explains a bound pod by its own record alone; which cards of the node these are is not known."""
    by = recorder(pod.owned, pod.node, pod.containers, pod.demand.needs)
    return BoundPod(pod.node, by, _since(pod.owned) if by else "", ())


def _since(record: Mapping[str, str]) -> str:
    """Reads the time of the choice from another system's annotations, which Halfcard writes too, in nanoseconds."""
    written = [value for key, value in record.items() if key.endswith(TIME_SUFFIXES) and value.isdecimal()]
    try:
        return datetime.fromtimestamp(int(written[0]) / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if written else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _grants(state: State, pod: PodFacts, usage: NodeUsage, share: Share) -> tuple[ContainerCards, ...]:
    others = [each for each in state.pods_on(pod.node) if each.uid != pod.uid and each.uid in usage.shares]
    others.sort(key=lambda each: each.title)
    holdings = read_holdings(pod.owned.get(names.HELD_BY, ""))
    laid = zip(pod.containers, pod.demand.needs, share.layout, strict=True)
    return tuple(
        ContainerCards(
            name,
            tuple(_held(usage, at, others) for at in positions),
            in_words(holdings.get(name)) if mode_of(need.claim, usage.room.slices) in LIMITED else "",
        )
        for name, need, positions in laid
    )


def _held(usage: NodeUsage, at: int, others: list[PodFacts]) -> HeldCard:
    card, shares = usage.room.cards[at], usage.shares
    neighbours = [
        card_holder(card, each, shares[each.uid].uses[at], recorded=shares[each.uid].recorded)
        for each in others
        if at in shares[each.uid].uses
    ]
    return HeldCard(card.index, name_of(card), card.model, usage.room.left[at].mode, tuple(neighbours))
