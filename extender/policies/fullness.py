"""How much of each card is used, as a part of 1."""

from __future__ import annotations

from halfcard.cards import Card
from halfcard.claims import WHOLE_CARD
from halfcard.placing.room import Room
from halfcard.placing.uses import HALVES, Left, Mode


def used(room: Room) -> list[float]:
    return [1.0 - free(card, left) for card, left in zip(room.cards, room.left, strict=True)]


def free(card: Card, left: Left) -> float:
    """The side that is shorter, cores or memory, decides."""
    match left.mode:
        case Mode.FREE:
            return 1.0
        case Mode.EXCLUSIVE:
            return 0.0
        case Mode.HALVES:
            return left.parts / HALVES
        case Mode.SLICES:
            return left.parts / max(card.replicas, 1)
    cores = left.cores / WHOLE_CARD
    return min(cores, left.mib / card.memory_mib) if card.memory_mib else cores
