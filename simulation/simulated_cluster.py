"""Places pods on nodes one after the other like the live extender.

Invariant: no amount is granted twice, and a pod that leaves restores the room before it. Each pod is placed where it
ranks highest, on the first such node. The ranks of a demand are cached; only changed nodes are ranked again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from extender.packing.placement import WORST, PackingPolicy
from halfcard.cards import Node
from halfcard.placing.card_usage import CardUse, take
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import best
from halfcard.placing.room import Room, empty_room

ARRIVALS_PER_ADAPTATION: Final = 100
"""The policy adapts to the cluster after so many arrivals, as it does every ten seconds in the live extender."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedPod:
    """A pod on the node at position `at`; `uses` is what it uses of each card."""

    at: int
    demand: Demand
    uses: Mapping[int, CardUse]


@dataclass(slots=True)
class _Ranks:
    """The ranks of one demand by node; they include the first `seen` changes."""

    of_nodes: list[float]
    seen: int


class SimulatedCluster:
    def __init__(self, nodes: Sequence[Node], policy: PackingPolicy) -> None:
        self.nodes = nodes
        self.policy = policy
        self.rooms = [empty_room(node) for node in nodes]
        self._pods: list[list[SimulatedPod]] = [[] for _ in nodes]
        self._arrivals = 0
        self._changed: list[int] = []
        self._ranks: dict[Demand, _Ranks] = {}
        self._values: dict[int, float] = {}
        known: dict[Hashable, int] = {}
        self._models = [known.setdefault((node.cards, node.slices), len(known)) for node in nodes]

    def arrive(self, demand: Demand) -> SimulatedPod | None:
        """Places a demand; None where no node can take it."""
        self._adapt_policy()
        ranks = self._current_ranks(demand)
        rank = max(ranks, default=WORST)
        if rank == WORST:
            return None
        at = ranks.index(rank)
        laid = best(self.rooms[at], demand, self.policy.value)
        if laid is None:
            raise AssertionError(f"{self.nodes[at].name} was ranked for {demand} and cannot take it")
        pod = SimulatedPod(at, demand, laid.uses)
        self._pods[at].append(pod)
        self._change(at, laid.room)
        return pod

    def leave(self, pod: SimulatedPod) -> None:
        pods = self._pods[pod.at]
        pods.remove(pod)
        self._change(pod.at, _room(self.nodes[pod.at], pods))

    def _adapt_policy(self) -> None:
        self._arrivals += 1
        if self._arrivals % ARRIVALS_PER_ADAPTATION != 1:
            return
        policy = self.policy.adapted(self.rooms)
        if policy is not self.policy:
            self.policy = policy
            self._ranks.clear()
            self._values.clear()

    def _change(self, at: int, room: Room) -> None:
        self.rooms[at] = room
        self._changed.append(at)
        self._values.pop(at, None)

    def _current_ranks(self, demand: Demand) -> list[float]:
        known = self._ranks.get(demand)
        if known is None:
            known = self._ranks[demand] = _Ranks(self._rank_all(demand), len(self._changed))
        else:
            for at in set(self._changed[known.seen :]):
                known.of_nodes[at] = self._rank(at, demand)
            known.seen = len(self._changed)
        return known.of_nodes

    def _rank_all(self, demand: Demand) -> list[float]:
        """Ranks all nodes; equal and equally full nodes are ranked once."""
        judged: dict[Hashable, float] = {}
        ranks = []
        for at, room in enumerate(self.rooms):
            key = self._models[at], room.left, room.cpu_milli, room.memory_mib
            if (rank := judged.get(key)) is None:
                rank = judged[key] = self._rank(at, demand)
            ranks.append(rank)
        return ranks

    def _rank(self, at: int, demand: Demand) -> float:
        room = self.rooms[at]
        if room.cpu_milli < demand.cpu_milli or room.memory_mib < demand.memory_mib:
            return WORST
        laid = best(room, demand, self.policy.value)
        if laid is None:
            return WORST
        gain = self.policy.value(laid.room) - self._value(at)
        return self.policy.rank(gain + self.policy.asked(room, demand))

    def _value(self, at: int) -> float:
        value = self._values.get(at)
        if value is None:
            value = self._values[at] = self.policy.value(self.rooms[at])
        return value


def _room(node: Node, pods: Sequence[SimulatedPod]) -> Room:
    room = empty_room(node)
    left = list(room.left)
    for pod in pods:
        for at, use in pod.uses.items():
            taken = take(node.cards[at], left[at], use)
            if taken is None:
                raise AssertionError(f"card {at} of {node.name} was granted twice")
            left[at] = taken
    asked = [pod.demand for pod in pods]
    return room.after(
        tuple(left),
        cpu_milli=sum([each.cpu_milli for each in asked]),
        memory_mib=sum([each.memory_mib for each in asked]),
    )
