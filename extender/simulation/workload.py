"""The pods that are placed in one replay, and the order of the nodes, drawn by a seed as published replays draw them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from halfcard.cards import Node
from halfcard.placing.demand import Demand

from ..fleet import Fleet, fleet_of
from ..mix import Kind, Mix
from .go_random import GoRandom

MILLI: Final = 1000
"""Demand is counted in thousandths of a card, as in the trace."""


class Pod(NamedTuple):
    """`kind` is its demand as policies expect it."""

    name: str
    demand: Demand
    kind: Kind

    @property
    def milli(self) -> int:
        return self.kind.cards * self.kind.share * 10


class Workload(NamedTuple):
    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]

    @property
    def mix(self) -> Mix:
        return Mix(tuple(Counter(pod.kind for pod in self.pods).items()))

    @property
    def fleet(self) -> Fleet:
        return fleet_of(self.nodes)

    @property
    def capacity_milli(self) -> int:
        return MILLI * sum(len(node.cards) for node in self.nodes)

    def as_it_is(self) -> Workload:
        return self

    def drawn(self, seed: int, tune: float) -> Workload:
        """Shuffled, and drawn again or left out until the cards asked for are `tune` times those there."""
        random = GoRandom(seed)
        random.int63()
        base = sorted(self.pods, key=lambda pod: pod.name)
        pods = list(base)
        random.shuffle(pods)
        wanted = int(tune * self.capacity_milli)
        if milli_of(pods) < wanted:
            _inflate(pods, base, wanted, random)
        else:
            _thin(pods, wanted, random)
        return Workload(tuple([self.nodes[at] for at in random.perm(len(self.nodes))]), tuple(pods))


def milli_of(pods: Iterable[Pod]) -> int:
    return sum([pod.milli for pod in pods])


def _inflate(pods: list[Pod], base: Sequence[Pod], wanted: int, random: GoRandom) -> None:
    asked = milli_of(pods)
    while (asked := asked + (pod := base[random.intn(len(base))]).milli) <= wanted:
        pods.append(pod)


def _thin(pods: list[Pod], wanted: int, random: GoRandom) -> None:
    asked = milli_of(pods)
    while asked > wanted:
        asked -= pods.pop(random.intn(len(pods))).milli
