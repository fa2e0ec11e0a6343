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
    settled,
    take_over,
    uid_of,
    without,
)
from halfcard.quota.reservation_expiry import OpenReservations
from kube.api.calls import NoAnswerError
from kube.ledger.ledger_store import LedgerError, LedgerStore, StoredLedger, WatchedLedger, is_newer
from serving.log import utc_now

from .usage_index import UsageIndex

_TRIES: Final = 20
"""Many others write; each of them has to come to an end, too."""

_NOTHING: Final[Mapping[str, Amounts]] = {}

_MOST_TOLD: Final = 10

IsStored = Callable[[Entry, str], Awaitable[bool]]
"""Reads the pod of a reservation now, and returns whether it is stored, or bound for the reservation of a bind."""


class LedgerController:
    """Controls the ledger of `budget`, which may change; `kept` is the last known ledger.

    Attributes:
        holding: the index of stored pods that are counted.
    """

    def __init__(self, ledgers: LedgerStore, budget: Budget, now: Callable[[], datetime] = utc_now) -> None:
        self.budget = budget
        self._now = now
        self.kept: StoredLedger | None = None
        self.holding = UsageIndex()
        self._ledgers = ledgers
        self._epoch = -1
        self._reservations = OpenReservations()
        self._room: Amounts = {}
        self._committed: Amounts | None = None
        self._turn = asyncio.Lock()  # `kept` is never older than what we wrote last

    @property
    def _hard(self) -> Amounts:
        return self.budget.enforced(self._now())

    @property
    def is_exempt(self) -> bool:
        return self.budget.is_exempt(self._now())

    @property
    def is_outdated(self) -> bool:
        """Something else is allowed by now, as at the end of an exemption."""
        return self.kept is not None and self.kept.ledger.hard != self._hard

    @property
    def altered(self) -> str:
        """Describes a difference between the committed amounts and our last write; empty where there is none."""
        if self.kept is None or self._committed is None or self.kept.ledger.epoch != self._epoch:
            return ""
        said, real = self.kept.ledger.committed, self._committed
        wrong = sorted(key for key in {*said, *real} if said.get(key, 0) != real.get(key, 0))
        told = [f"{key}={amount(key, said.get(key, 0))} instead of {amount(key, real.get(key, 0))}" for key in wrong]
        return ", ".join(told[:_MOST_TOLD])

    def has_more_room(self) -> bool:
        """Than when this was asked before, of anything."""
        if self.kept is None:
            return False
        before = self._room
        self._room = free(self.kept.ledger)
        return any(room > 0 and room > before.get(key, 0) for key, room in self._room.items())

    @property
    def has_open(self) -> bool:
        return self.kept is not None and bool(self.kept.ledger.open)

    def is_due(self, has_ended: Callable[[str], bool]) -> bool:
        """Returns whether a write is needed: reservations of stored or ended pods, or committed amounts changed by
        another writer.
        """
        if self.kept is None:
            return False
        ledger = self.kept.ledger
        return bool(settled(ledger, self._pods(has_ended, ledger))) or bool(self.altered)

    def _pods(self, has_ended: Callable[[str], bool], ledger: Ledger, came: Collection[str] = ()) -> StoredPods:
        held = self.holding
        return StoredPods(held.entries, held.bound, came, _ended(ledger, has_ended), held.total)

    def saw(self, seen: WatchedLedger) -> None:
        """Records a watched ledger, which may be older than our own last write."""
        if self.kept is None or is_newer(seen.version, self.kept.version):
            self.kept = seen.read()

    async def take_over(self) -> None:
        """Raises LedgerError and NoAnswerError."""
        async with self._turn:
            await self._take_over()

    async def _take_over(self) -> None:
        for _ in range(_TRIES):
            kept = await self._ledgers.read(self.budget.ledger)
            mine = take_over(kept.ledger if kept else Ledger({}), self.budget.uid)._replace(hard=self._hard)
            written = await (
                self._ledgers.write(self.budget.ledger, mine, kept)
                if kept
                else self._ledgers.create(self.budget.ledger, mine)
            )
            if written is not None:
                self.kept, self._epoch, self._committed = written, mine.epoch, None
                return
        raise LedgerError(f"ledger {self.budget.ledger} changes faster than it can be taken over")

    async def commit(self, has_ended: Callable[[str], bool], lent: Mapping[str, Amounts] = _NOTHING) -> None:
        """Commits what pods hold. Raises LostLeadership, LedgerError and NoAnswerError.

        `lent` is what others have borrowed from it, which a newly created ledger does not know.
        """
        came: frozenset[str] = frozenset()
        committed: Amounts = {}

        def with_commits(ledger: Ledger) -> Ledger:
            nonlocal came, committed
            came = frozenset(self.holding.came)
            pods = self._pods(has_ended, ledger, came if self._committed is not None else ())
            # Where the quota is gone it is nobody's: one that comes back as the same begins anew.
            found = commit(ledger, self._epoch, pods)._replace(hard=self._hard, of=self.budget.uid)
            committed = found.committed
            return found if ledger.is_ready else found._replace(lent=lent)

        await self._change(with_commits)
        self.holding.counted(came)
        self._committed = committed

    async def expire(self, now: Callable[[], float], is_stored: IsStored) -> None:
        """Advances the age of open reservations once. Raises like `commit`."""
        began = now()
        try:
            await self._read()
            opened = self.kept.ledger.open if self.kept else {}
            sought = [uid for uid in self._reservations.nearly_old() if uid in opened]
            found = await asyncio.gather(*[is_stored(opened[uid], uid) for uid in sought])
        except (LedgerError, NoAnswerError):
            self._reservations = self._reservations.failed()
            raise
        kept = {reservation for reservation, there in zip(sought, found, strict=True) if there}
        if self.kept is not None:
            kept |= settled(self.kept.ledger, StoredPods(self.holding.entries, self.holding.bound))
        self._reservations = self._reservations.read(began, opened, kept)
        if void := self._reservations.void():
            await self.change(lambda ledger: without(ledger, void))

    async def clear_away(self) -> None:
        """Deletes the ledger of a deleted quota once it holds nothing."""
        if self.kept is not None and not self.kept.ledger.open and not self.kept.ledger.borrowed:
            await self._ledgers.delete(self.budget.ledger, self.kept)

    async def change(self, change: Callable[[Ledger], Ledger]) -> None:
        """Raises as `commit`, and what `change` raises."""

        def mine(ledger: Ledger) -> Ledger:
            if ledger.epoch != self._epoch:
                raise LostLeadership
            return change(ledger)

        await self._change(mine)

    async def _read(self) -> None:
        async with self._turn:
            self.kept = await self._ledgers.read(self.budget.ledger)

    async def _change(self, change: Callable[[Ledger], Ledger]) -> None:
        async with self._turn:
            await self._write(change)

    async def _write(self, change: Callable[[Ledger], Ledger]) -> None:
        for _ in range(_TRIES):
            kept = self.kept or await self._ledgers.read(self.budget.ledger)
            if kept is None:
                raise LostLeadership  # whoever deletes a ledger makes us count anew
            after = change(kept.ledger)
            if after == kept.ledger:
                return
            self.kept = await self._ledgers.write(self.budget.ledger, after, kept)
            if self.kept is not None:
                return
        raise LedgerError(f"ledger {self.budget.ledger} changes faster than it can be written")


def _ended(ledger: Ledger, has_ended: Callable[[str], bool]) -> frozenset[str]:
    return frozenset(uid for uid in map(uid_of, ledger.open) if has_ended(uid))
