"""Rates nodes: a policy values what remains on a node, and a pod is placed where that value falls least.

Invariant: a policy looks at what remains on one node and at nothing else, so that an answer is valid until the node
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import compress
from math import ceil
from typing import Final, Protocol

from halfcard.placing.demand import Demand
from halfcard.placing.layouts import best
from halfcard.placing.room import Room
from halfcard.pod import card_preferences

from .fleet import Fleet
from .workload_mix import WorkloadMix

TOP: Final = 10
"""kube-scheduler's best score; one node has it, because the scheduler breaks ties at random."""

WORST: Final = float("-inf")
"""The rank of a node that cannot take the pod."""

_SECOND: Final = TOP - 1
_IS_BEST: Final = bytes([score == _SECOND for score in range(256)])
_NEAR: Final = 1e-9


class PackingPolicy(Protocol):
    @property
    def name(self) -> str: ...

    def value(self, room: Room) -> float:
        """Rates what remains on a node; the gain of a pod is the value after its placement less the value before."""

    def asked(self, room: Room, demand: Demand) -> float:
        """Returns what is added to the gain because the pod asks for such cards; 0 where it does not."""

    def rank(self, gain: float) -> float:
        """Rounds a gain: of nodes with equal ranks the first in a fixed order takes the pod."""

    def adapted(self, rooms: Iterable[Room]) -> PackingPolicy:
        """Returns the policy for the present cluster; the same object if no value changes."""


POLICIES: Final[Mapping[str, Callable[[WorkloadMix, Fleet], PackingPolicy]]] = {
    name: import_module(f".policies.{name}", __package__).make_policy for name in card_preferences.POLICIES
}
"""How to make each policy from the expected pods and the cluster; `card_preferences.POLICIES` names the modules."""


def rank_of(room: Room, demand: Demand, policy: PackingPolicy) -> float:
    """Ranks the best layout of the demand in the room; `WORST` where there is none."""
    laid = best(room, demand, policy.value)
    if laid is None:
        return WORST
    return policy.rank(policy.value(laid.room) - policy.value(room) + policy.asked(room, demand))


def scores(ranks: Sequence[float], names: Sequence[str]) -> bytes:
    """Returns one byte for each node: 10 for the first by name of the best, 9 down to 0 for others by their distance.

    If all nodes rank alike, as on an idle cluster, the others have 0, which need not be sent.
    """
    distinct = [*{*ranks}]
    return encode_scores(distinct, "".join([chr(distinct.index(rank)) for rank in ranks]), names)


def encode_scores(ranks: Sequence[float], letters: str, names: Sequence[str]) -> bytes:
    """Computes `scores`; the code of each letter is the index of a name's rank, so that no loop over names is needed.

    The scheduler API's answer_cache says why.
    """
    if not letters:
        return b""
    here = {at: rank for at, rank in enumerate(ranks) if chr(at) in letters}
    used = {*here.values()}
    best: Iterable[str] = names
    given = bytearray(len(letters))
    if len(used) > 1:
        table = _scores_by_rank(used)
        given = bytearray(letters.translate({at: table[rank] for at, rank in here.items()}), "latin-1")
        best = compress(names, given.translate(_IS_BEST))
    given[names.index(min(best))] = TOP
    return bytes(given)


def _scores_by_rank(ranks: set[float]) -> Mapping[float, int]:
    possible = ranks - {WORST}
    best, worst = max(possible), min(possible)
    step = (best - worst) / _SECOND or 1.0
    return {WORST: 0, **{rank: _SECOND - ceil((best - rank) / step - _NEAR) for rank in possible}}
