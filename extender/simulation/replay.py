"""Pods on nodes, placed one after the other as the live extender places them.

The law: nothing is ever given twice, and what a pod leaves is as if it had never come. Each pod goes where it ranks
highest, the first such node in their order. The ranks of a demand are kept; only nodes that changed are asked again.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from halfcard.cards import Node
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import best
from halfcard.placing.room import Room, empty_room
from halfcard.placing.uses import Use, take

from ..answers import WORST
from ..placement import Policy

_MOST_JUDGED: Final = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Stay:
    """A pod on the node at this position; `uses` by card."""

    at: int
    demand: Demand
    uses: Mapping[int, Use]


@dataclass(slots=True)
class _Ranks:
    """Of one demand: by node, good until the changes after `seen`."""

    of_nodes: list[float]
    seen: int


@dataclass(slots=True)
class Cluster:
    nodes: Sequence[Node]
    policy: Policy
    rooms: list[Room] = field(init=False)
    _stays: list[list[Stay]] = field(init=False)
    _changed: list[int] = field(default_factory=list)
    _ranks: dict[Demand, _Ranks] = field(default_factory=dict)
    _judged: dict[Hashable, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rooms = [empty_room(node) for node in self.nodes]
        self._stays = [[] for _ in self.nodes]

    def arrive(self, demand: Demand) -> Stay | None:
        """None where no node can take it."""
        ranks = self._current_ranks(demand)
        rank = max(ranks, default=WORST)
        if rank == WORST:
            return None
        at = ranks.index(rank)
        laid = best(self.rooms[at], demand, self.policy.value)
        if laid is None:
            raise AssertionError(f"{self.nodes[at].name} was ranked for {demand} and cannot take it")
        stay = Stay(at, demand, laid.uses)
        self._stays[at].append(stay)
        self._change(at, laid.room)
        return stay

    def leave(self, stay: Stay) -> None:
        stays = self._stays[stay.at]
        stays.remove(stay)
        self._change(stay.at, _room(self.nodes[stay.at], stays))

    def policy_changed(self) -> None:
        """What nodes are worth has changed everywhere."""
        self._ranks.clear()
        self._judged.clear()

    def _change(self, at: int, room: Room) -> None:
        self.rooms[at] = room
        self._changed.append(at)

    def _current_ranks(self, demand: Demand) -> list[float]:
        known = self._ranks.get(demand)
        if known is None:
            known = self._ranks[demand] = _Ranks([WORST] * len(self.nodes), len(self._changed))
            stale = set(range(len(self.nodes)))
        else:
            stale = set(self._changed[known.seen :])
            known.seen = len(self._changed)
        for at in stale:
            known.of_nodes[at] = self._rank(self.rooms[at], demand)
        return known.of_nodes

    def _rank(self, room: Room, demand: Demand) -> float:
        if room.cpu_milli < demand.cpu_milli or room.memory_mib < demand.memory_mib:
            return WORST
        laid = best(room, demand, self.policy.value)
        if laid is None:
            return WORST
        return self.policy.rank(self.policy.value(laid.room) - self.policy.value(room))


def _room(node: Node, stays: Sequence[Stay]) -> Room:
    room = empty_room(node)
    left = list(room.left)
    for stay in stays:
        for at, use in stay.uses.items():
            taken = take(node.cards[at], left[at], use)
            if taken is None:
                raise AssertionError(f"card {at} of {node.name} was given away twice")
            left[at] = taken
    asked = [stay.demand for stay in stays]
    return room.after(
        tuple(left),
        cpu_milli=sum([each.cpu_milli for each in asked]),
        memory_mib=sum([each.memory_mib for each in asked]),
    )
