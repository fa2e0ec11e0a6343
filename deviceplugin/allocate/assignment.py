"""Decides which cards a pod has on this node, by its record or by a choice where no record exists, and whether it may
start.

Invariant: a record is obeyed or refused, never guessed and never rewritten. No container starts on a card next to
containers that leave too little of it, whatever the API server shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from halfcard.cards import Card, Node
from halfcard.claims import WHOLE_CARD
from halfcard.placing import node_usage
from halfcard.placing.card_usage import CardMode, CardRoom, CardUse, take, untouched, use_of_card, worth
from halfcard.placing.layouts import RatedLayout, best
from halfcard.placing.node_usage import Share, usage_of_pods
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.records import name_of
from halfcard.placing.room import Room, empty_room
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


def choose_share(pod: PodFacts, node: Node, holding: Iterable[PodFacts], waiting: Iterable[PodFacts]) -> Share:
    """Chooses a layout for a pod that was bound by a scheduler that writes no record.

    Of the pods that wait for their first start without a record, as it does, the older ones that fit come first. Each
    takes its first layout in an order that does not depend on the others, so that the same pods start whichever begins.
    """
    if pod.trouble:
        raise RefusedError(pod.trouble)
    room = usage_of_pods(node, [each.bound() for each in holding if each.uid != pod.uid]).room
    ahead: list[PodFacts] = []
    for each in sorted([each for each in waiting if _age(each) < _age(pod) and not each.trouble], key=_age):
        if (earlier := _first_layout(room, each)) is not None:
            room, ahead = earlier.room, [*ahead, each]
    laid = _first_layout(room, pod)
    if laid is None:
        raise _no_room(pod, node, ahead)
    return Share(laid.layout, laid.uses, recorded=False)


def _age(pod: PodFacts) -> tuple[str, str]:
    return pod.created, pod.uid


def _first_layout(room: Room, pod: PodFacts) -> RatedLayout | None:
    return best(room, pod.demand._replace(cpu_milli=0, memory_mib=0), _first_cards)


def _first_cards(room: Room) -> float:
    """Rates a layout by the positions of its cards alone, the first best: `packed` would prefer what others use."""
    return -sum([at * _used(card, left) for at, (card, left) in enumerate(zip(room.cards, room.left, strict=True))])


def _used(card: Card, left: CardRoom) -> float:
    cores, mib = worth(card, use_of_card(card, left))
    return cores / WHOLE_CARD + mib / (card.memory_mib or 1)


def _no_room(pod: PodFacts, node: Node, ahead: Sequence[PodFacts]) -> RefusedError:
    older = printable(", ".join(each.title for each in ahead), _NAMED_CHARS)
    beside = f" beside the older pods that start first ({older})" if ahead else ""
    return RefusedError(
        f"pod {pod.title} was bound to node {node.name} without a record of its cards, and the node's cards have no "
        f"room for it{beside}; delete it to have it placed again, or {_AGAIN}"
    )


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
            raise RefusedError(
                f"pod {title}: card {_title(card)} {_taken(left, holders)}; delete the pod to have it placed again, "
                f"or {_AGAIN}"
            )


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
