"""Use what is used least: nodes first, then cards."""

from __future__ import annotations

from halfcard.placing.room import Room

from .fullness import used


class Spread:
    name = "spread"

    def value(self, room: Room) -> float:
        cards = used(room)
        return -sum(each * each for each in cards) - sum(cards) ** 2 / max(len(cards), 1)

    def rank(self, gain: float) -> float:
        return round(gain, 6)
