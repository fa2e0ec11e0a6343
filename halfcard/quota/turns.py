"""Gives the pods of a rollout the turns of the pods that they replace, and lets the earlier revisions wait behind them.

Without it a rollout could stand still for good: behind a pod that needs more than the rollout frees, or behind a pod of
an earlier revision that never fits. Invariant: with inherited turns a workload is charged no more than the pods whose
turns these were, so that no workload passes others to grow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from .ledger import Amounts, sum_of


class Workload(NamedTuple):
    """The owner of pods that replaces them by a rollout, such as a Deployment."""

    namespace: str
    kind: str
    name: str


class Member(NamedTuple):
    """A pod of a workload.

    Attributes:
        revision: the version of the pod template.
        created: in the API server's format, which sorts as text, as does `turn`.
        turn: when it is in order: `created`, or that of the pod which it replaced.
    """

    revision: str
    created: str
    turn: str
    charge: Amounts


class Place(IntEnum):
    """The order of pods with the same time, which has only whole seconds."""

    INHERITED = 0
    OWN = 1
    BEHIND_OUR_OWN = 2


class Turn(NamedTuple):
    """Where a waiting pod is in order."""

    time: str
    place: Place = Place.OWN


def turns(waiting: Mapping[str, Member], held: Sequence[Member], left: Sequence[Member]) -> dict[str, Turn]:
    """Returns the turns of the waiting pods of one workload, by uid; `held` are its charged pods, `left` those that
    were deleted and not replaced yet.
    """
    newest = _newest(waiting.values(), [*waiting.values(), *held, *left])
    earlier = [each for each in waiting.values() if each.revision != newest]
    ours = {uid: each for uid, each in waiting.items() if each.revision == newest}
    last = max(each.created for each in ours.values())
    found = {
        uid: Turn(max(each.created, last), Place.BEHIND_OUR_OWN) for uid, each in waiting.items() if uid not in ours
    }
    now = [each for each in held if each.revision == newest]
    others = [each for each in held if each.revision != newest]
    for uid, member in sorted(ours.items(), key=lambda item: item[1].created):
        found[uid] = _turn(member, [*held, *left, *earlier], now, others)
        if found[uid].place is Place.INHERITED:
            now.append(member)
    return found


def _newest(waiting: Iterable[Member], members: Iterable[Member]) -> str:
    """Returns the revision among the waiting pods whose first pod is the youngest."""
    first: dict[str, str] = {}
    for each in members:
        first[each.revision] = min(each.created, first.get(each.revision, each.created))
    return max({each.revision for each in waiting}, key=lambda revision: (first[revision], revision))


def _turn(member: Member, places: Sequence[Member], now: Sequence[Member], others: Sequence[Member]) -> Turn:
    """Returns the earliest turn up to which the workload had as much as the pod and all that it has now, or its own."""
    for time in sorted({each.turn for each in places if each.turn <= member.created}):
        before = sum_of(each.charge for each in places if each.turn <= time)
        later = [each for each in others if each.turn > time]
        needed = sum_of(each.charge for each in (*now, *later, member))
        both = [key for key, amount in member.charge.items() if amount and before[key]]
        if both and all(needed[key] <= before[key] for key in both):
            return Turn(time, Place.INHERITED)
    return Turn(member.created)
