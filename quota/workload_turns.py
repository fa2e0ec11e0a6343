"""Remembers the turns of the pods of workloads, so that rollouts keep theirs in the queues of budgets.

Stored pods do not show whose turn a pod took, and which pods left: a new leader gets both from `turns_store`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from halfcard.quota.turns import Member, Turn, Workload, turns

_KEPT_S: Final = 3600.0
"""A step of a rollout that takes longer begins as a new pod."""


class _Left(NamedTuple):
    """A pod that was deleted, and not replaced yet."""

    member: Member
    at_s: float


class HeldTurn(NamedTuple):
    """A charged pod and its workload."""

    workload: Workload
    member: Member


class LeftTurn(NamedTuple):
    """A pod of a workload that left, and when."""

    workload: Workload
    member: Member
    at_s: float


class KeptTurns(NamedTuple):
    """All turns at one moment, charged pods by uid."""

    held: Mapping[str, HeldTurn]
    left: Sequence[LeftTurn]


class WorkloadTurns:
    """The charged pods of each workload, and those that left.

    Attributes:
        changes: how often they have changed.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.changes = 0
        self._now_s = now_s
        self._workloads: dict[str, Workload] = {}
        self._held: dict[Workload, dict[str, Member]] = {}
        self._left: dict[Workload, list[_Left]] = {}

    def put(self, uid: str, workload: Workload, member: Member) -> None:
        """Adds a charged pod, once; it takes the turn of a pod that left."""
        if uid in self._workloads:
            return
        self.changes += 1
        self._workloads[uid] = workload
        if left := self._lately(workload):
            first = min(left, key=lambda each: each.member.turn)
            left.remove(first)
            member = member._replace(turn=min(member.turn, first.member.turn))
        self._held.setdefault(workload, {})[uid] = member

    def drop(self, uid: str, *, is_deleted: bool) -> None:
        """Removes a pod that is charged no longer; only one that was deleted is replaced by another."""
        if (workload := self._workloads.pop(uid, None)) is None:
            return
        self.changes += 1
        member = self._held[workload].pop(uid)
        if not self._held[workload]:
            del self._held[workload]
        if is_deleted:
            self._left.setdefault(workload, []).append(_Left(member, self._now_s()))

    def keep(self, uids: Collection[str]) -> None:
        """Removes all other pods, after a new list: nothing says how they ended."""
        for uid in self._workloads.keys() - set(uids):
            self.drop(uid, is_deleted=False)

    def kept(self, concerns: Callable[[str], bool]) -> KeptTurns:
        """Returns the turns of all workloads in the namespaces of interest."""
        concerned = [workload for workload in {*self._held, *self._left} if concerns(workload.namespace)]
        held = {
            uid: HeldTurn(workload, member)
            for workload in concerned
            for uid, member in self._held.get(workload, {}).items()
        }
        left = [LeftTurn(workload, *each) for workload in concerned for each in self._lately(workload)]
        return KeptTurns(held, left)

    def restore(self, kept: KeptTurns) -> None:
        """Takes over the turns of another replica: pods that are gone by now have left, later ones take their turns."""
        now = [(uid, workload, self._held[workload][uid]) for uid, workload in self._workloads.items()]
        self._workloads, self._held, self._left = {}, {}, {}
        for workload, member, at_s in kept.left:
            self._left.setdefault(workload, []).append(_Left(member, at_s))
        for uid, (workload, member) in kept.held.items():
            self._workloads[uid] = workload
            self._held.setdefault(workload, {})[uid] = member
        for uid in kept.held.keys() - {uid for uid, _, _ in now}:
            self.drop(uid, is_deleted=True)
        for uid, workload, member in sorted(now, key=lambda each: each[2].created):
            self.put(uid, workload, member)

    def of(self, workload: Workload, waiting: Mapping[str, Member]) -> dict[str, Turn]:
        """Returns the turns of the waiting pods of a workload."""
        held = [*self._held.get(workload, {}).values()]
        return turns(waiting, held, [each.member for each in self._lately(workload)])

    def forget_old(self) -> None:
        """Forgets what left long ago."""
        for workload in [*self._left]:
            self._lately(workload)

    def _lately(self, workload: Workload) -> list[_Left]:
        """Returns what left and may still be replaced."""
        now_s = self._now_s()
        found = [each for each in self._left.pop(workload, ()) if now_s - each.at_s < _KEPT_S]
        if found:
            self._left[workload] = found
        return found
