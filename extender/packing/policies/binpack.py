"""Fills cards, then nodes: prefers what is used already."""

from __future__ import annotations

from collections.abc import Iterable

from halfcard.placing.demand import Demand
from halfcard.placing.room import Room

from ..fleet import Fleet
from ..workload_mix import WorkloadMix
from .fullness import used


class Binpack:
    name = "binpack"

    def value(self, room: Room) -> float:
        cards = used(room)
        return sum(each * each for each in cards) + sum(cards) ** 2 / max(len(cards), 1)

    def asked(self, room: Room, demand: Demand) -> float:
        return 0.0

    def rank(self, gain: float) -> float:
        return round(gain, 6)

    def adapted(self, rooms: Iterable[Room]) -> Binpack:
        return self


def make_policy(_mix: WorkloadMix, _fleet: Fleet) -> Binpack:
    return Binpack()
