"""The pods of one replay and the order of its nodes, drawn by a seed as published replays draw them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from extender.packing.fleet import Fleet, fleet_of
from extender.packing.strength import Strengths
from extender.packing.workload_mix import WorkloadMix, pod_class_of
from halfcard.cards import Node
from halfcard.placing.demand import Demand

from .go_random import GoRandom

MILLI: Final = 1000
"""Demand is counted in thousandths of a card, as in the trace."""


class TracePod(NamedTuple):
    """A pod of a trace; `milli` is its total request of cards."""

    name: str
    demand: Demand
    milli: int


def pod_of(name: str, demand: Demand, usual_card_mib: int = 0) -> TracePod:
    """Makes a pod; a memory request is converted by the usual memory of a card."""
    return TracePod(name, demand, round(MILLI * pod_class_of(demand).on_cards_of(usual_card_mib).load))


class ReplayWorkload(NamedTuple):
    nodes: tuple[Node, ...]
    pods: tuple[TracePod, ...]
    strengths: Strengths = ()

    @property
    def mix(self) -> WorkloadMix:
        return WorkloadMix(tuple(Counter([pod_class_of(pod.demand) for pod in self.pods]).items()))

    @property
    def fleet(self) -> Fleet:
        return fleet_of(self.nodes, self.strengths)

    @property
    def capacity_milli(self) -> int:
        return MILLI * sum(len(node.cards) for node in self.nodes)

    def drawn(self, seed: int, tune: float) -> ReplayWorkload:
        """Shuffles the pods, and draws more or removes some until they request `tune` times the existing cards."""
        random = GoRandom(seed)
        random.int63()
        base = sorted(self.pods, key=lambda pod: pod.name)
        pods = list(base)
        random.shuffle(pods)
        wanted = int(tune * self.capacity_milli)
        if 0 < milli_of(pods) < wanted:
            _inflate(pods, base, wanted, random)
        else:
            _thin(pods, wanted, random)
        nodes = tuple([self.nodes[at] for at in random.perm(len(self.nodes))])
        return self._replace(nodes=nodes, pods=tuple(pods))


def milli_of(pods: Iterable[TracePod]) -> int:
    return sum([pod.milli for pod in pods])


def _inflate(pods: list[TracePod], base: Sequence[TracePod], wanted: int, random: GoRandom) -> None:
    asked = milli_of(pods)
    while (asked := asked + (pod := base[random.intn(len(base))]).milli) <= wanted:
        pods.append(pod)


def _thin(pods: list[TracePod], wanted: int, random: GoRandom) -> None:
    asked = milli_of(pods)
    while asked > wanted:
        asked -= pods.pop(random.intn(len(pods))).milli
