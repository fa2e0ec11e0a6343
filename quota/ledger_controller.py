"""Controls one ledger while this replica leads.

Invariant: no write in an epoch of another leader, and no release of a reservation whose pod may still be stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime
from typing import Final

from halfcard.quota.budget_messages import amount
from halfcard.quota.budgets import Budget
from halfcard.quota.ledger import (
    Amounts,
    Entry,
    Ledger,
    LostLeadership,
    StoredPods,
    commit,
    free,
    pod_uid,
    settled,
    take_over,
    without,
)
from halfcard.quota.reservation_expiry import OpenReservations
from kube.api.calls import NoAnswerError
from kube.ledger.ledger_store import LedgerError, LedgerStore, StoredLedger, WatchedLedger, is_newer
from serving.log import utc_now

from .usage_index import UsageIndex

_TRIES: Final = 20
"""The webhook's replicas write the same ledger; each conflict means that one of them succeeded."""

_NOTHING: Final[Mapping[str, Amounts]] = {}

_MAX_NAMED: Final = 10

IsStored = Callable[[Entry, str], Awaitable[bool]]
"""Reads the pod of a reservation now, and returns whether it is stored, or bound for the reservation of a bind."""


class LedgerController:
    """Controls the ledger of `budget`, which may change.

    Attributes:
        stored: the last known ledger.
        usage: the index of stored pods that are counted.
    """

    def __init__(self, ledgers: LedgerStore, budget: Budget, now: Callable[[], datetime] = utc_now) -> None:
        self.budget = budget
        self._now = now
        self.stored: StoredLedger | None = None
        self.usage = UsageIndex()
        self._ledgers = ledgers
        self._epoch = -1
        self._reservations = OpenReservations()
        self._room: Amounts = {}
        self._committed: Amounts | None = None
        self._lock = asyncio.Lock()  # one write at a time: `stored` is never older than our last write

    @property
    def _hard(self) -> Amounts:
        return self.budget.enforced(self._now())

    @property
    def is_exempt(self) -> bool:
        return self.budget.is_exempt(self._now())

    @property
    def is_outdated(self) -> bool:
        """Whether the limits differ from those in the ledger, as at the end of an exemption."""
        return self.stored is not None and self.stored.ledger.hard != self._hard

    @property
    def foreign_change(self) -> str:
        """Describes a difference between the committed amounts and our last write; empty where there is none."""
        if self.stored is None or self._committed is None or self.stored.ledger.epoch != self._epoch:
            return ""
        found, ours = self.stored.ledger.committed, self._committed
        wrong = sorted(key for key in {*found, *ours} if found.get(key, 0) != ours.get(key, 0))
        differences = [
            f"{key}={amount(key, found.get(key, 0))} instead of {amount(key, ours.get(key, 0))}" for key in wrong
        ]
        return ", ".join(differences[:_MAX_NAMED])

    def has_gained_room(self) -> bool:
        """Returns whether any amount has more room than at the last call."""
        if self.stored is None:
            return False
        before = self._room
        self._room = free(self.stored.ledger)
        return any(room > 0 and room > before.get(key, 0) for key, room in self._room.items())

    @property
    def has_reservations(self) -> bool:
        return self.stored is not None and bool(self.stored.ledger.reservations)

    def is_due(self, has_ended: Callable[[str], bool]) -> bool:
        """Returns whether a write is needed: reservations of stored or ended pods, or committed amounts changed by
        another writer.
        """
        if self.stored is None:
            return False
        ledger = self.stored.ledger
        return bool(settled(ledger, self._pods(has_ended, ledger))) or bool(self.foreign_change)

    def _pods(self, has_ended: Callable[[str], bool], ledger: Ledger, arrived: Collection[str] = ()) -> StoredPods:
        usage = self.usage
        return StoredPods(usage.entries, usage.total, usage.bound, arrived, _ended(ledger, has_ended))

    def ledger_changed(self, watched: WatchedLedger) -> None:
        """Records a watched ledger, which may be older than our own last write."""
        if self.stored is None or is_newer(watched.version, self.stored.version):
            self.stored = watched.read()

    async def take_over(self) -> None:
        """Begins an epoch of this replica. Raises LedgerError and NoAnswerError."""
        name = self.budget.ledger
        async with self._lock:
            for _ in range(_TRIES):
                stored = await self._ledgers.read(name)
                mine = take_over(stored.ledger if stored else Ledger({}), self.budget.uid)._replace(hard=self._hard)
                written = await (
                    self._ledgers.write(name, mine, stored) if stored else self._ledgers.create(name, mine)
                )
                if written is not None:
                    self.stored, self._epoch, self._committed = written, mine.epoch, None
                    return
        raise LedgerError(f"ledger {name} changes faster than it can be taken over")

    async def commit(self, has_ended: Callable[[str], bool], lent: Mapping[str, Amounts] = _NOTHING) -> None:
        """Commits the charges of stored pods. Raises LostLeadership, LedgerError and NoAnswerError.

        `lent` is what others have borrowed from it, which a newly created ledger does not know.
        """
        arrived: frozenset[str] = frozenset()
        committed: Amounts = {}

        def with_commits(ledger: Ledger) -> Ledger:
            nonlocal arrived, committed
            arrived = frozenset(self.usage.arrived)
            pods = self._pods(has_ended, ledger, arrived if self._committed is not None else ())
            # The uid is empty once the quota is deleted: if the same quota comes back, its ledger is initialised again.
            found = commit(ledger, self._epoch, pods)._replace(hard=self._hard, quota_uid=self.budget.uid)
            committed = found.committed
            return found if ledger.is_ready else found._replace(lent=lent)

        await self._change(with_commits)
        self.usage.clear_arrived(arrived)
        self._committed = committed

    async def expire(self, now: Callable[[], float], is_stored: IsStored) -> None:
        """Advances the age of open reservations once. Raises like `commit`."""
        began = now()
        try:
            async with self._lock:
                self.stored = await self._ledgers.read(self.budget.ledger)
            entries = self.stored.ledger.reservations if self.stored else {}
            due = [uid for uid in self._reservations.due_for_look() if uid in entries]
            found = await asyncio.gather(*[is_stored(entries[uid], uid) for uid in due])
        except (LedgerError, NoAnswerError):
            self._reservations = self._reservations.failed()
            raise
        used = {reservation for reservation, is_used in zip(due, found, strict=True) if is_used}
        if self.stored is not None:
            used |= settled(self.stored.ledger, StoredPods(self.usage.entries, self.usage.total, self.usage.bound))
        self._reservations = self._reservations.read(began, entries, used)
        if expired := self._reservations.expired():
            await self.change(lambda ledger: without(ledger, expired))

    async def delete_if_unused(self) -> None:
        """Deletes the ledger of a deleted quota once nothing is reserved or borrowed in it."""
        if self.stored is not None and not self.stored.ledger.reservations and not self.stored.ledger.borrowed:
            await self._ledgers.delete(self.budget.ledger, self.stored)

    async def change(self, change: Callable[[Ledger], Ledger]) -> None:
        """Writes a changed ledger. Raises like `commit`, and what `change` raises."""

        def mine(ledger: Ledger) -> Ledger:
            if ledger.epoch != self._epoch:
                raise LostLeadership
            return change(ledger)

        await self._change(mine)

    async def _change(self, change: Callable[[Ledger], Ledger]) -> None:
        name = self.budget.ledger
        async with self._lock:
            for _ in range(_TRIES):
                stored = self.stored or await self._ledgers.read(name)
                if stored is None:
                    raise LostLeadership  # the ledger was deleted: it must be created and counted again
                after = change(stored.ledger)
                if after == stored.ledger:
                    return
                self.stored = await self._ledgers.write(name, after, stored)
                if self.stored is not None:
                    return
        raise LedgerError(f"ledger {name} changes faster than it can be written")


def _ended(ledger: Ledger, has_ended: Callable[[str], bool]) -> frozenset[str]:
    return frozenset(uid for uid in map(pod_uid, ledger.reservations) if has_ended(uid))
