"""The default policy: values what remains on a node by what the expected pods can use of it.

In cards:

- holes: the most valuable set of shares that still fits on each card; 12 for a whole card
- less 0.7 of what the expected pods cannot use
- less four times the cards for which the node has too little CPU, multiplied by their part of its free cards
- plus 0.3 of every free card, multiplied by how much its model is requested by name
- plus twice what is reserved for pods that request several cards, where nodes for them are few
- less 0.05 of each divided card, multiplied by how much stronger it is than the weakest card of the cluster
- plus 0.05, multiplied by the same, if whole cards are taken whose model the pod names
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from math import floor
from typing import Final, NamedTuple

from halfcard.claims import WHOLE_CARD
from halfcard.placing.demand import Demand
from halfcard.placing.room import Room

from ..fleet import Fleet, cards_in, usual_card_mib
from ..workload_mix import PodClass, WorkloadMix
from .fullness import fullness
from .holes import Worth, worth_of_holes
from .reserve import Reserve, reserve_for, scarce_of, update_scarcity
from .usable import Usable

_HOLES: Final = 12.0
_PARTS: Final = 0.8
"""A free part of a divided card is worth less than a part of a free card, so that the next part is taken there."""
_UNUSABLE: Final = 0.7
_CPU: Final = 4.0
_CPU_NEEDED: Final = 0.8
"""The part of the average CPU request that counts: a node need not serve all pods at once."""
_REQUESTED: Final = 0.3
_RESERVED: Final = 2.0
_STRONG: Final = 0.05
"""As much as costs nothing on the public trace; docs/packing.md has the figures."""
_STEP: Final = 0.05
"""Gains that differ less rank alike, and the first node takes the pod, so that nodes are filled one after another."""

_NEAR: Final = 1e-9

_FREQUENT: Final = 0.8
"""The classes that make up this part of all pods decide what is usable; hundreds of rare classes change little."""


class _Model(NamedTuple):
    """What the value of a node takes from the model of its cards."""

    usable: Usable
    reserve: Reserve
    requested: float
    stronger: float


class Outlook(NamedTuple):
    """The expected pods, of which `using` use cards; and how much stronger each model and size is than the weakest."""

    using: WorkloadMix
    fleet: Fleet
    holes: Worth
    cpu_per_card: float
    strengths: Mapping[tuple[str, int], float]


def make_policy(mix: WorkloadMix, fleet: Fleet) -> Default:
    card_mib = usual_card_mib(fleet)
    using = mix.as_seen(lambda kind: kind.on_cards_of(card_mib)).where(lambda kind: kind.load > 0)
    outlook = Outlook(using, fleet, _holes(using), _cpu_per_card(using), _strengths(fleet))
    return Default(outlook, reserve_for(using.kinds, fleet))


class Default:
    name = "default"

    def __init__(self, outlook: Outlook, reserve: Reserve) -> None:
        self._outlook = outlook
        self._reserve = reserve
        self._model = lru_cache(maxsize=256)(partial(_model_facts, outlook, reserve))

    def value(self, room: Room) -> float:
        if not room.cards:
            return 0.0
        amounts, parts, divided = fullness(room)
        model = self._model_of(room)
        cpu, memory = room.cpu_milli, room.memory_mib
        holes, per_card = self._outlook.holes, _CPU_NEEDED * self._outlook.cpu_per_card
        left = sum(amounts) / WHOLE_CARD
        worth = _HOLES * (sum([holes[amount] for amount in amounts]) + _PARTS * parts)
        if left:
            worth += _REQUESTED * model.requested * left - _UNUSABLE * (left - model.usable.of(amounts, cpu, memory))
            if per_card and cpu < per_card * left:
                short = left - cpu / per_card
                worth -= _CPU * short * short / left  # by the square: CPU is used where there is much of it
        if model.reserve and (idle := amounts.count(WHOLE_CARD)):
            worth += _RESERVED * sum([wide.reserved(idle, cpu, memory) for wide in model.reserve])
        return worth - _STRONG * model.stronger * divided

    def asked(self, room: Room, demand: Demand) -> float:
        """Prefers the strongest of the models that a pod of whole cards names."""
        if not room.cards or not demand.wanted.models or not all(need.claim.exclusive for need in demand.needs):
            return 0.0
        return _STRONG * self._model_of(room).stronger

    def _model_of(self, room: Room) -> _Model:
        return self._model(room.cards[0].model, room.cards[0].memory_mib or 0)

    def rank(self, gain: float) -> float:
        return floor(gain / _STEP + _NEAR)

    def adapted(self, rooms: Iterable[Room]) -> Default:
        reserve = update_scarcity(self._reserve, rooms, self._outlook.cpu_per_card)
        return self if reserve == self._reserve else Default(self._outlook, reserve)


def _model_facts(outlook: Outlook, reserve: Reserve, model: str, card_mib: int) -> _Model:
    frequent = [(kind, weight) for kind, weight in outlook.using.common(_FREQUENT) if kind.may_use(model)]
    requested = _requested(outlook.using, outlook.fleet, model)
    stronger = outlook.strengths.get((model, card_mib), 0.0)
    return _Model(Usable(frequent), scarce_of(reserve, model), requested, stronger)


def _strengths(fleet: Fleet) -> Mapping[tuple[str, int], float]:
    """Returns how much stronger each card is than the weakest; one that joins later counts as weak until a refresh.

    Large differences count more than small ones, for which a worse place for a share would be a high price.
    """
    weakest = min([shape.strength for shape, _ in fleet], default=0.0)
    return {(shape.model, shape.card_mib): _stronger(shape.strength - weakest) for shape, _ in fleet}


def _stronger(steps: float) -> float:
    return steps * (1 + steps / 2)


def _holes(using: WorkloadMix) -> Worth:
    shares: dict[int, float] = {}
    for kind, count in using.kinds:
        if not kind.is_whole:
            shares[kind.share] = shares.get(kind.share, 0.0) + count * kind.cards
    return worth_of_holes(shares)


def _cpu_per_card(using: WorkloadMix) -> float:
    load = sum(count * kind.load for kind, count in using.kinds)
    return sum(count * kind.cpu_milli for kind, count in using.kinds) / load if load else 0.0


def _requested(using: WorkloadMix, fleet: Fleet, model: str) -> float:
    """Returns the part of all demand that names the model, relative to the part of all cards that it may use."""
    load = sum(count * kind.load for kind, count in using.kinds)
    total = 0.0
    for kind, count in using.kinds:
        if kind.models and kind.may_use(model) and load:
            total += count * kind.load / load * cards_in(fleet) / max(_cards_for(kind, fleet), 1)
    return total


def _cards_for(kind: PodClass, fleet: Fleet) -> int:
    return cards_in(tuple([(shape, nodes) for shape, nodes in fleet if kind.may_use(shape.model)]))
