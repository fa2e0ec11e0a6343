"""Fragmentation gradient descent (Weng et al., USENIX ATC 2023): lose the least that expected pods could have used.

What a class of pods cannot use of a node is lost to it: cards with too little left, and all cards if CPU, model or
number of cards do not suffice. Amounts are in thousandths of a card; pods that use no card lose everything.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from halfcard.claims import WHOLE_CARD
from halfcard.placing.demand import Demand
from halfcard.placing.room import Room

from ..fleet import Fleet, usual_card_mib
from ..workload_mix import PodClass, WorkloadMix
from .fullness import fullness

_TYPICAL: Final = 0.95
_PER_HUNDREDTH: Final = 10


class _Losses(NamedTuple):
    """The losses on nodes of one model with enough CPU for the same classes.

    Attributes:
        of_card: the loss by what is left of a card.
        of_all: the weight of classes that lose all cards.
        several: the classes that request several cards, with their weights.
    """

    of_card: tuple[float, ...]
    of_all: float
    several: tuple[tuple[PodClass, float], ...]


class FragmentationGradientDescent:
    name = "fgd"

    def __init__(self, mix: WorkloadMix, fleet: Fleet) -> None:
        card_mib = usual_card_mib(fleet)
        seen = mix.as_seen(lambda kind: kind.on_cards_of(card_mib)._replace(memory_mib=0))
        self._kinds = seen.common(_TYPICAL)
        self._steps = sorted({kind.cpu_milli for kind, _ in self._kinds})
        self._losses = lru_cache(maxsize=4096)(self._compute_losses)

    def value(self, room: Room) -> float:
        if not room.cards:
            return 0.0
        enough_for = bisect_right(self._steps, room.cpu_milli)
        of_card, of_all, several = self._losses(room.cards[0].model, enough_for)
        left = fullness(room).amounts
        total = sum(left)
        lost = of_all * total + sum([of_card[amount] for amount in left])
        for kind, weight in several:
            unusable = [amount for amount in left if amount < kind.share]
            lost += weight * (sum(unusable) if len(left) - len(unusable) >= kind.cards else total)
        return -_PER_HUNDREDTH * lost

    def asked(self, room: Room, demand: Demand) -> float:
        return 0.0

    def rank(self, gain: float) -> float:
        """Rounds as published: with a fixed order of nodes the first of nodes with close gains takes the pod."""
        return int(100 / (1 + math.exp(-round(gain, 6) / 1000)))

    def adapted(self, rooms: Iterable[Room]) -> FragmentationGradientDescent:
        return self

    def _compute_losses(self, model: str, enough_for: int) -> _Losses:
        most_cpu = self._steps[enough_for - 1] if enough_for else -1
        fitting = [
            (kind, weight)
            for kind, weight in self._kinds
            if kind.share and kind.cpu_milli <= most_cpu and kind.may_use(model)
        ]
        # A card that is too small for a pod of one card is lost to it, even if another card of the node fits.
        single = [(kind.share, weight) for kind, weight in fitting if kind.cards == 1]
        several = [(kind, weight) for kind, weight in fitting if kind.cards > 1]
        of_card = [left * sum(weight for share, weight in single if left < share) for left in range(WHOLE_CARD + 1)]
        of_all = sum(weight for _, weight in self._kinds) - sum(weight for _, weight in fitting)
        return _Losses(tuple(of_card), of_all, tuple(several))


def make_policy(mix: WorkloadMix, fleet: Fleet) -> FragmentationGradientDescent:
    return FragmentationGradientDescent(mix, fleet)
