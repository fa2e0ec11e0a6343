"""Spreads pods: prefers the least used node, then its least used card."""

from __future__ import annotations

from collections.abc import Iterable

from halfcard.placing.demand import Demand
from halfcard.placing.room import Room

from ..fleet import Fleet
from ..workload_mix import WorkloadMix
from .binpack import Binpack

_PACKED = Binpack()


class Spread:
    name = "spread"

    def value(self, room: Room) -> float:
        return -_PACKED.value(room)

    def asked(self, room: Room, demand: Demand) -> float:
        return 0.0

    def rank(self, gain: float) -> float:
        return _PACKED.rank(gain)

    def adapted(self, rooms: Iterable[Room]) -> Spread:
        return self


def make_policy(_mix: WorkloadMix, _fleet: Fleet) -> Spread:
    return Spread()
