"""Fill cards, then nodes: what is used already is used on."""

from __future__ import annotations

from collections.abc import Iterable

from halfcard.placing.room import Room

from .fullness import used


class Binpack:
    name = "binpack"

    def value(self, room: Room) -> float:
        cards = used(room)
        return sum(each * each for each in cards) + sum(cards) ** 2 / max(len(cards), 1)

    def rank(self, gain: float) -> float:
        return round(gain, 6)

    def adapted(self, rooms: Iterable[Room]) -> Binpack:
        return self
