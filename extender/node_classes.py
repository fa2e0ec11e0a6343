"""Groups equal rooms into classes: thousands of nodes form some hundred classes, and each class is judged once.

Invariant: whether a demand fits in a room, and why not, is the same for its whole class, unless the pod names single
cards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from halfcard.cards import Card
from halfcard.placing.card_usage import CardRoom
from halfcard.placing.demand import Demand
from halfcard.placing.room import Room


@dataclass(frozen=True, slots=True, eq=False)
class NodeClass:
    """The class of equal rooms, which share one object; compared by identity, so it is a cheap key."""

    room: Room
    is_linked: bool


def class_of(room: Room) -> NodeClass:
    cards, is_linked = _stripped(room.cards)
    if cards.count(cards[0]) == len(cards) if cards else True:
        return _shared(cards, tuple(sorted(room.left)), room.slices, is_linked)
    pairs = sorted(zip(cards, room.left, strict=True), key=_order)
    left = tuple([each for _, each in pairs])
    return _shared(tuple([card for card, _ in pairs]), left, room.slices, is_linked)


def names_single_cards(demand: Demand) -> bool:
    """Returns whether the demand names cards by UUID, so that equal cards are not interchangeable."""
    return bool(demand.wanted.uuids or demand.wanted.not_uuids)


def _order(pair: tuple[Card, CardRoom]) -> tuple[object, ...]:
    card, left = pair
    return card.model, card.memory_mib or 0, card.replicas, card.why_not, card.not_held, left


@lru_cache(maxsize=2**14)
def _stripped(cards: tuple[Card, ...]) -> tuple[tuple[Card, ...], bool]:
    """Removes what identifies the cards; also returns whether their connections are known."""
    kinds = [
        _kind(card.model, card.memory_mib, card.replicas, is_out=bool(card.why_not), is_loose=bool(card.not_held))
        for card in cards
    ]
    return tuple(kinds), any(card.links for card in cards)


@lru_cache(maxsize=2**10)
def _kind(model: str, memory_mib: int | None, replicas: int, *, is_out: bool, is_loose: bool) -> Card:
    why_not, not_held = "out of order" * is_out, "not held" * is_loose
    return Card(0, model, memory_mib, replicas=replicas, why_not=why_not, not_held=not_held)


@lru_cache(maxsize=2**16)
def _shared(cards: tuple[Card, ...], left: tuple[CardRoom, ...], slices: str, is_linked: bool) -> NodeClass:  # noqa: FBT001
    return NodeClass(Room(cards, left, slices), is_linked)
