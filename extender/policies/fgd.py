"""Fragmentation gradient descent (Weng et al., USENIX ATC 2023): lose the least that expected pods could have used."""

from __future__ import annotations

import math

from halfcard.placing.room import Room

from ..mix import Mix
from .fullness import free


class FragmentationGradientDescent:
    name = "fgd"

    def __init__(self, mix: Mix) -> None:
        self._kinds = mix.common(0.95)

    def value(self, room: Room) -> float:
        """Minus what of the node's cards is of no use to pods that are expected, in thousandths of a card."""
        cards = [round(1000 * free(card, left)) for card, left in zip(room.cards, room.left, strict=True)]
        model = room.cards[0].model if room.cards else ""
        total = sum(cards)
        lost = 0.0
        for kind, weight in self._kinds:
            share = kind.share * 10
            if (
                share == 0
                or not kind.may_use(model)
                or room.cpu_milli < kind.cpu_milli
                or sum(each >= share for each in cards) < kind.cards
            ):
                lost += weight * total
            else:
                lost += weight * sum(each for each in cards if each < share)
        return -lost

    def rank(self, gain: float) -> float:
        """Rounded as published: together with a fixed order of nodes it makes gains that are close a first fit."""
        return int(100 / (1 + math.exp(-gain / 1000)))
