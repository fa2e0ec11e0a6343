"""The default."""

from __future__ import annotations

from halfcard.placing.room import Room

from ..fleet import Fleet
from ..mix import Mix
from .fgd import FragmentationGradientDescent


class Default:
    name = "default"

    def __init__(self, mix: Mix, fleet: Fleet) -> None:
        self._fgd = FragmentationGradientDescent(mix)

    def value(self, room: Room) -> float:
        return self._fgd.value(room)

    def rank(self, gain: float) -> float:
        return self._fgd.rank(gain)
