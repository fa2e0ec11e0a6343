"""Computes a node's room from the pods that are bound to it.

Invariant: the room depends on the node and its pods alone, not on the order of events: two observers of the same pods
compute the same room. Recorded pods are placed first; pods without a record follow in the order of their creation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final, NamedTuple

from .. import names
from ..capacity import MAX_CARD_MIB
from ..cards import Node
from ..claims import WHOLE_CARD, Part
from ..problems import printable
from .card_usage import CardMode, CardRoom, CardUse, give_back, is_whole, take, untouched
from .demand import Demand
from .layouts import Layout, best, peaks
from .records import Named, positions
from .room import Room, empty_room

_NAMED_CHARS: Final = 80


class Bound(NamedTuple):
    """A pod on a node: what it needs, and the cards that its record names."""

    created: str
    uid: str
    title: str
    demand: Demand
    named: Named | None


class Share(NamedTuple):
    """The cards of one pod; `recorded` is False where no record exists and the layout is a guess."""

    layout: Layout
    uses: Mapping[int, CardUse]
    recorded: bool


class RecordError(ValueError):
    """A record gives its pod no layout on the node; the text follows the name of the pod."""


class NodeUsage(NamedTuple):
    """What the pods on a node use of it.

    Attributes:
        shares: the cards of pods with claims, by uid.
        doubts: inconsistencies, a sentence each.
        is_certain: all pods have usable records and no card is over-committed, so that the order does not matter.
    """

    room: Room
    shares: Mapping[str, Share]
    doubts: tuple[str, ...]
    is_certain: bool


def recorded(pod: Bound, node: Node, room: Room) -> Share | None:
    """Returns the layout that the pod's record names; None where it has none. Raises RecordError.

    `room` is that of the node without pods.
    """
    if pod.named is None:
        return None
    layout = positions(pod.named, node)
    if not layout:
        cards = printable(", ".join(name for cards in pod.named for name in cards), _NAMED_CHARS)
        rule = f'names cards that the node does not have: "{cards}"' if cards else "cannot be understood"
        raise RecordError(f"its record {rule}")
    uses = peaks(room, pod.demand, layout)
    if uses is None:
        raise RecordError("its record names a card twice, or for containers that exclude each other")
    return Share(layout, uses, recorded=True)


def usage_of_pods(node: Node, pods: Iterable[Bound]) -> NodeUsage:
    in_order = sorted(pods, key=_age)
    taking = _Taking(node)
    unrecorded = [pod for pod in in_order if pod.demand.needs and not taking.obey(pod)]
    for pod in unrecorded:
        taking.guess(pod)
    used = [pod.demand for pod in in_order]
    cpu_milli, memory_mib = sum([each.cpu_milli for each in used]), sum([each.memory_mib for each in used])
    room = empty_room(node).after(tuple(taking.left), cpu_milli=cpu_milli, memory_mib=memory_mib)
    return NodeUsage(room, taking.shares, tuple(taking.doubts), not taking.doubts and not unrecorded)


def with_pod(holding: NodeUsage, node: Node, pod: Bound) -> NodeUsage | None:
    """Adds one pod; equal to `usage_of_pods` with that pod. None where the result depends on the other pods."""
    if not pod.demand.needs:
        return holding._replace(room=_machine_less(holding.room, pod.demand))
    layout = positions(pod.named, node) if pod.named is not None else None
    uses = peaks(holding.room, pod.demand, layout) if layout else None
    if layout is None or uses is None or not holding.is_certain:
        return None
    left = list(holding.room.left)
    for at, use in uses.items():
        if (after := take(node.cards[at], left[at], use)) is None:
            return None
        left[at] = after
    shares = {**holding.shares, pod.uid: Share(layout, uses, recorded=True)}
    return holding._replace(room=_machine_less(holding.room, pod.demand, tuple(left)), shares=shares)


def without_pod(holding: NodeUsage, node: Node, pod: Bound) -> NodeUsage | None:
    """Removes one pod; equal to `usage_of_pods` without it. None where the result depends on the other pods."""
    back = pod.demand._replace(cpu_milli=-pod.demand.cpu_milli, memory_mib=-pod.demand.memory_mib)
    share = holding.shares.get(pod.uid)
    if share is None and not pod.demand.needs:
        return holding._replace(room=_machine_less(holding.room, back))
    if share is None or not holding.is_certain:
        return None
    shares = dict(holding.shares)
    del shares[pod.uid]
    left = list(holding.room.left)
    for at, use in share.uses.items():
        if node.cards[at].memory_mib is None:
            return None  # the card may be over-committed by an unknown amount
        left[at] = give_back(left[at], use)
        # a share without amounts locks a card, too
        if is_whole(node.cards[at], left[at]) and not any(at in other.uses for other in shares.values()):
            left[at] = untouched(node.cards[at])
    return holding._replace(room=_machine_less(holding.room, back, tuple(left)), shares=shares)


def _machine_less(room: Room, demand: Demand, left: tuple[CardRoom, ...] | None = None) -> Room:
    return room.after(room.left if left is None else left, cpu_milli=demand.cpu_milli, memory_mib=demand.memory_mib)


def _age(pod: Bound) -> tuple[str, str]:
    return pod.created, pod.uid


class _Taking:
    """Places the pods of a node one after the other, also on unhealthy cards, which only take nothing new."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.left = [untouched(card) for card in node.cards]
        self.shares: dict[str, Share] = {}
        self.doubts: list[str] = []

    def obey(self, pod: Bound) -> bool:
        """Places a pod as its record says; returns False where it has no record that gives a layout."""
        try:
            share = recorded(pod, self._node, self._empty)
        except RecordError as why:
            self._doubt(pod, str(why))
            return False
        if share is not None:
            self._lay(pod, share)
        return share is not None

    def guess(self, pod: Bound) -> None:
        demand = pod.demand._replace(cpu_milli=0, memory_mib=0)
        found = best(replace(self._empty, left=tuple(self.left), slices=self._sold(demand)), demand, packed)
        layout = found.layout if found is not None else self._in_spite(pod, demand)
        uses = layout and peaks(self._empty, demand, layout)
        if layout is not None and uses:
            self._lay(pod, Share(layout, uses, recorded=False))

    def _in_spite(self, pod: Bound, demand: Demand) -> Layout | None:
        """Guesses a layout for a bound pod that does not fit: where most remains, so that the guess affects neighbours
        least.

        A pod that asks for more than a whole card has no layout, unless the size of a card is unknown.
        """
        cards = self._empty.cards
        order = sorted(
            range(len(cards)), key=lambda at: (self.left[at].mode is not CardMode.FREE, -self.left[at].cores)
        )
        boundless = [replace(cards[at], memory_mib=cards[at].memory_mib or MAX_CARD_MIB) for at in order]
        node = replace(self._node, cards=tuple(boundless), slices=self._sold(demand))
        found = best(empty_room(node), demand, packed)
        if cards:
            more = "and more than is left on any" if found is not None else "and asks for more than cards have"
            self._doubt(pod, f"it has no usable record of its cards, {more}")
        return found and tuple([tuple([order[at] for at in positions]) for positions in found.layout])

    def _sold(self, demand: Demand) -> str:
        """Returns the time-slice resource of a bound pod, which counts even if the node offers another one now."""
        is_sliced = any(need.claim.part is Part.SLICE for need in demand.needs)
        return names.NVIDIA_GPU_SHARED if is_sliced else self._node.slices

    @cached_property
    def _empty(self) -> Room:
        cards = tuple([replace(card, why_not="", not_held="") for card in self._node.cards])
        return empty_room(replace(self._node, cards=cards))

    def _lay(self, pod: Bound, share: Share) -> None:
        for at, use in share.uses.items():
            card, before = self._node.cards[at], self.left[at]
            left = take(card, before, use)
            if left is None and card.memory_mib is not None:
                self._doubt(pod, f"card {card.index} has less left than the pod uses of it")
            self.left[at] = left or _exhausted(before, use)
        self.shares[pod.uid] = share

    def _doubt(self, pod: Bound, why: str) -> None:
        self.doubts.append(f"pod {pod.title} on node {self._node.name}: {why}")


def _exhausted(left: CardRoom, use: CardUse) -> CardRoom:
    """Returns the rest of an over-committed card: nothing remains."""
    return CardRoom(use.mode if left.mode is CardMode.FREE else left.mode, 0, 0, 0)


def packed(room: Room) -> float:
    """Values free cards most, then little left on used ones: the agents of all systems fill used cards first."""
    return sum([1000.0 if left.mode is CardMode.FREE else -left.cores / WHOLE_CARD for left in room.left])
