"""Decides which cards a pod has on this node, by its record or by a choice where no record exists, and whether it may
start.

Invariant: a record is obeyed or refused, never guessed and never rewritten. No container starts on a card next to
containers that leave too little of it, whatever the API server shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from halfcard.cards import Card, Node
from halfcard.placing import node_usage
from halfcard.placing.card_usage import CardMode, CardRoom, CardUse, take, untouched
from halfcard.placing.layouts import best
from halfcard.placing.node_usage import Share, packed, usage_of_pods
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.records import name_of
from halfcard.placing.room import empty_room
from halfcard.problems import printable

from ..kubelet.messages import RefusedError

_NAMED_CHARS: Final = 80
_OVERFULL: Final = CardRoom(CardMode.EXCLUSIVE, 0, 0, 0)
_AGAIN: Final = "kubelet tries again"


class RunningPod(NamedTuple):
    """A pod whose containers may be running, and its peak use of each card, by the card's name."""

    title: str
    uses: Mapping[str, CardUse]


def recorded_share(pod: PodFacts, node: Node) -> Share | None:
    """Reads the recorded layout; None where no record exists."""
    try:
        return node_usage.recorded(pod.bound(), node, empty_room(node))
    except node_usage.RecordError as why:
        raise RefusedError(f"pod {pod.title} on node {node.name}: {why}; delete the pod to have it placed") from None


def choose_share(pod: PodFacts, node: Node, others: Iterable[PodFacts]) -> Share:
    """Chooses a layout for a pod that was bound by a scheduler that writes no record."""
    if pod.trouble:
        raise RefusedError(pod.trouble)
    room = usage_of_pods(node, [each.bound() for each in others if each.uid != pod.uid and not each.is_over]).room
    laid = best(room, pod.demand._replace(cpu_milli=0, memory_mib=0), packed)
    if laid is None:
        raise RefusedError(
            f"pod {pod.title} was bound to node {node.name} without a record of its cards, and the node's cards "
            f"have no room for it; {_AGAIN}"
        )
    return Share(laid.layout, laid.uses, recorded=False)


def check_fits(title: str, node: Node, uses: Mapping[str, CardUse], others: Iterable[RunningPod]) -> None:
    """Checks the cards against all running containers: those of a pod deleted by force may run for a while."""
    running = list(others)
    for card in node.cards:
        name = name_of(card)
        if name not in uses:
            continue
        if card.why_not:
            raise RefusedError(f"pod {title}: card {_title(card)} is out of order: {card.why_not}; {_AGAIN}")
        holders = [pod for pod in running if name in pod.uses]
        left = _left(card, [pod.uses[name] for pod in holders])
        if take(card, left, uses[name]) is None:
            raise RefusedError(f"pod {title}: card {_title(card)} {_taken(left, holders)}; {_AGAIN}")


def _left(card: Card, uses: Iterable[CardUse]) -> CardRoom:
    left: CardRoom | None = untouched(card)
    for use in uses:
        left = left and take(card, left, use)
    return left or _OVERFULL


def _taken(left: CardRoom, holders: Sequence[RunningPod]) -> str:
    if not holders:
        return "has less than the pod requests"
    by = printable(", ".join(pod.title for pod in holders), _NAMED_CHARS)
    rest = f"{left.cores} % of its cores and {left.mib} MiB" if left.mode is CardMode.SHARED else "too little"
    return f"is used by containers of {by}, which still run and leave {rest}"


def _title(card: Card) -> str:
    return f"{card.index} ({card.uuid})" if card.uuid else str(card.index)
