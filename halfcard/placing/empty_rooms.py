"""Decides whether a pod could be placed at all: whether one of the nodes could take it without any other pod.

What is not known of a card is assumed to be as the pod needs it, and single cards that a pod names may be replaced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from ..cards import Card, Node
from ..pod.card_preferences import NOTHING_WANTED
from .demand import Demand
from .layouts import fits
from .room import Room, empty_room

_ANY_MIB: Final = 2**31


def empty_rooms(nodes: Iterable[Node]) -> frozenset[Room]:
    """Returns the rooms of nodes with cards before any pod is placed, one for all equal nodes."""
    kinds = {(tuple(map(_kind, node.cards)), node.slices) for node in nodes if node.cards}
    return frozenset(empty_room(Node("", cards, slices)) for cards, slices in kinds)


def _kind(card: Card) -> Card:
    return Card(0, card.model, card.memory_mib or _ANY_MIB, replicas=card.replicas)


def could_take(rooms: Iterable[Room], demand: Demand) -> bool:
    """Returns whether the pod fits in one of these rooms, whatever CPU and memory it needs."""
    wanted = replace(demand.wanted, uuids=(), not_uuids=())
    return any(_fits(room, Demand(demand.needs, wanted)) for room in rooms)


def _fits(room: Room, demand: Demand) -> bool:
    has_unknown = not all(card.model for card in room.cards)
    return fits(room, demand._replace(wanted=NOTHING_WANTED) if has_unknown else demand)
