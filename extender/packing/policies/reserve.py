"""Decides which nodes to reserve for wide pods, which request several whole cards of one node, once such nodes are few.

A node counts the cards that wide pods could use on it, and a part of the cards that nearly suffice for one more, so
that nearly idle nodes become idle rather than half full. If CPU is exhausted before cards, nothing is reserved: cards
would stay idle because the other nodes have no CPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from halfcard.claims import WHOLE_CARD
from halfcard.placing.room import Room

from ..fleet import Fleet, NodeShape
from ..workload_mix import PodClass
from .fullness import fullness
from .usable import per_unit

_SHARE_OF_FREE: Final = 1.5
"""Multiplies what wide pods would use of the free cards if all pods fit."""
_DEVIATIONS: Final = 1.0
"""Standard deviations of the number of wide pods, which varies by chance."""
_HYSTERESIS: Final = 1.15
_CPU_TO_SPARE: Final = 1.5
"""Multiplies the CPU that pods for all free cards would request."""
_MAX_CLASSES: Final = 12


class Wide(NamedTuple):
    """One class of wide pods.

    Attributes:
        weight: its part of the demand of all wide pods.
        expected: the part of all demand that requests as much of a node or more.
        models: the models of nodes that could take it if they were empty.
        scarce: whether nodes that could take it now are few.
    """

    kind: PodClass
    weight: float
    expected: float
    models: frozenset[str]
    per_cpu: float
    per_memory: float
    scarce: bool = False

    def times(self, idle: int, cpu_milli: int, memory_mib: int) -> float:
        """Returns how many pods of the class would fit on a node, with fractions."""
        times = idle / self.kind.cards
        if self.per_cpu:
            times = min(times, cpu_milli * self.per_cpu)
        if self.per_memory:
            times = min(times, memory_mib * self.per_memory)
        return max(times, 0.0)

    def reserved(self, idle: int, cpu_milli: int, memory_mib: int) -> float:
        times = self.times(idle, cpu_milli, memory_mib)
        whole = math.floor(times)
        return self.weight * self.kind.cards * (whole + (times - whole) ** 2)


Reserve = tuple[Wide, ...]


def reserve_for(kinds: Sequence[tuple[PodClass, float]], fleet: Fleet) -> Reserve:
    loads = [(kind, weight * kind.load) for kind, weight in kinds]
    everything = sum(load for _, load in loads)
    wide = sorted([item for item in loads if item[0].cards > 1 and item[0].is_whole], key=lambda item: -item[1])
    wanted = sum(load for _, load in wide)

    def make_wide(kind: PodClass, load: float) -> Wide:
        no_less = (other for each, other in wide if each.cards >= kind.cards and each.cpu_milli >= kind.cpu_milli)
        models = frozenset(shape.model for shape, _ in fleet if _could_take(shape, kind))
        per_unit_of = per_unit(kind.cpu_milli), per_unit(kind.memory_mib)
        return Wide(kind, load / wanted, sum(no_less) / everything, models, *per_unit_of)

    return tuple([make_wide(kind, load) for kind, load in wide[:_MAX_CLASSES]])


def _could_take(shape: NodeShape, kind: PodClass) -> bool:
    enough = shape.cards >= kind.cards and shape.cpu_milli >= kind.cpu_milli and shape.memory_mib >= kind.memory_mib
    return enough and kind.may_use(shape.model)


def scarce_of(reserve: Reserve, model: str) -> Reserve:
    return tuple([wide for wide in reserve if wide.scarce and model in wide.models])


def update_scarcity(reserve: Reserve, rooms: Iterable[Room], cpu_per_card: float) -> Reserve:
    """Updates what is scarce in the present cluster; it stays scarce until there is clearly more."""
    cards, free, cpu_milli = 0, 0.0, 0
    places = [0] * len(reserve)
    for room in rooms:
        amounts = fullness(room).amounts
        cards += len(amounts)
        free += sum(amounts) / WHOLE_CARD
        cpu_milli += max(room.cpu_milli, 0)
        idle = amounts.count(WHOLE_CARD)
        for at, wide in enumerate(reserve if idle > 1 else ()):
            if idle >= wide.kind.cards and room.cards[0].model in wide.models:
                places[at] += wide.kind.cards * int(wide.times(idle, room.cpu_milli, room.memory_mib))
    if cpu_milli < _CPU_TO_SPARE * free * cpu_per_card:
        return tuple([wide._replace(scarce=False) for wide in reserve])
    return tuple([_judged(wide, place, cards, free) for wide, place in zip(reserve, places, strict=True)])


def _judged(wide: Wide, places: int, cards: int, free: float) -> Wide:
    needed = _SHARE_OF_FREE * wide.expected * free
    needed += _DEVIATIONS * math.sqrt(wide.expected * cards * wide.kind.cards)
    return wide._replace(scarce=places < needed * (_HYSTERESIS if wide.scarce else 1))
