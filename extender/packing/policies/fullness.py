"""Computes what remains of the cards of a node, in hundredths of a card."""

from __future__ import annotations

from typing import NamedTuple

from halfcard.cards import Card
from halfcard.claims import WHOLE_CARD
from halfcard.placing.card_usage import HALVES, CardMode, CardRoom
from halfcard.placing.room import Room


class Fullness(NamedTuple):
    """What remains of a node.

    Attributes:
        amounts: for each card what shares and whole cards could use: the smaller of cores and memory.
        parts: the free halves and time slices of cards that are divided into them, in cards.
        divided: the number of cards that are used in shares, halves or time slices.
    """

    amounts: list[int]
    parts: float
    divided: int


def fullness(room: Room) -> Fullness:
    amounts, parts, divided = [], 0.0, 0
    for card, left in zip(room.cards, room.left, strict=True):
        mode, amount, mib, rest = left
        if card.why_not or mode is CardMode.EXCLUSIVE:
            amounts.append(0)
        elif mode is CardMode.FREE:
            amounts.append(WHOLE_CARD)
        elif mode is CardMode.SHARED:
            divided += 1
            whole = card.memory_mib
            if mib != whole and whole and mib * WHOLE_CARD < amount * whole:
                amount = mib * WHOLE_CARD // whole
            amounts.append(amount)
        else:
            divided += 1
            amounts.append(0)
            parts += rest / parts_of(card, left)
    return Fullness(amounts, parts, divided)


def used(room: Room) -> list[float]:
    """Returns the used fraction of each card."""
    left = zip(room.cards, room.left, fullness(room).amounts, strict=True)
    return [1.0 - amount / WHOLE_CARD - each.parts / parts_of(card, each) for card, each, amount in left]


def parts_of(card: Card, left: CardRoom) -> int:
    return HALVES if left.mode is CardMode.HALVES else max(card.replicas, 1)
