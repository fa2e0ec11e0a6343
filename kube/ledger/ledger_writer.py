"""Reserves in one ledger for many callers: all calls that arrive during a write share the next write.

Invariant: no call is admitted before the write with its reservation is stored, and none is refused on the basis of a
read that began before the call.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from halfcard.quota.ledger import (
    MAX_RESERVATIONS_OF_NAMESPACE,
    USAGE_UNKNOWN,
    Amounts,
    Busy,
    Entry,
    Exceeded,
    Ledger,
    ReservationBatch,
    Shortage,
    reserve,
    shortages,
    without,
)

from ..api.calls import NoAnswerError
from .ledger_store import LedgerError, LedgerStore, StoredLedger, WatchedLedger, is_newer
from .write_rotation import WriteRotation

PATIENCE_S: Final = 3.0
"""The API server waits 5 s for a webhook, and the answer must still travel."""

_CALL_S: Final = 2.0
_RETRY_S: Final = 0.02
"""Pause after a call without an answer, or after another writer was faster."""

Clock = Callable[[], float]


@dataclass(slots=True, eq=False)
class ReservationAttempt:
    """One call that waits for its reservation.

    Attributes:
        quota_uid: the uid of the quota that the ledger must belong to.
        started: when the call began, by our own clock.
        outcome: whether this call made the reservation, so that it may release it.
        is_unsure: whether a write without an answer may have stored the reservation.
    """

    uid: str
    entry: Entry
    quota_uid: str
    started: float
    outcome: asyncio.Future[bool]
    is_unsure: bool = False


@dataclass(slots=True)
class _Results:
    """The results of the attempts, valid once `ledger` is written."""

    ledger: Ledger
    reserved: list[tuple[ReservationAttempt, bool]] = field(default_factory=list)
    refused: list[tuple[ReservationAttempt, Exceeded | Busy]] = field(default_factory=list)


class LedgerWriter:
    """Created on the event loop."""

    def __init__(
        self,
        ledgers: LedgerStore,
        name: str,
        clock: Clock,
        max_of_namespace: int = MAX_RESERVATIONS_OF_NAMESPACE,
    ) -> None:
        self._max_of_namespace = max_of_namespace
        self._ledgers = ledgers
        self._name = name
        self._clock = clock
        self._waiting: list[ReservationAttempt] = []
        self._to_release: set[str] = set()
        self._stored: StoredLedger | None = None
        self._outdated: StoredLedger | None = None  # another writer has replaced this version, or may have
        self._watched: WatchedLedger | None = None
        self._read_at = 0.0
        self._rotation = WriteRotation(secrets.token_hex(4))
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def reserve(self, uid: str, entry: Entry, quota_uid: str) -> bool:
        """Reserves the charge of a pod; returns whether this call made the reservation, which may have existed before.

        Raises:
            Exceeded: the charge does not fit.
            Busy: no certain answer was possible in time.
        """
        outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(ReservationAttempt(uid, entry, quota_uid, self._clock(), outcome))
        self._work()
        return await outcome

    def ledger_changed(self, watched: WatchedLedger | None) -> None:
        """Records a change of the ledger, by any writer."""
        self._watched = watched
        if watched is not None and watched.writer != self._rotation.me:
            if watched.writer:
                self._rotation.record_write(watched.writer, self._clock())
            self._changed.set()

    def release(self, uid: str) -> None:
        """Releases a reservation with the next write; if that fails, the reservation expires."""
        self._to_release.add(uid)
        self._work()

    async def check(self, entry: Entry, quota_uid: str) -> None:
        """Raises like `reserve`, and writes nothing."""
        ledger = await self.read()
        _check_owner(ledger, quota_uid)
        reserve(ledger, "", entry, self._max_of_namespace)

    def known(self) -> Ledger | None:
        """Returns the last known ledger from any source, also while a write is retried."""
        stored = self._newest()
        return stored.ledger if stored is not None else None

    async def read(self) -> Ledger:
        """Reads the ledger by a call that begins now. Raises Busy where there is no answer."""
        try:
            return (await self._read()).ledger
        except (NoAnswerError, LedgerError) as error:
            raise Busy(str(error)) from error

    async def known_shortages(self, charge: Amounts) -> list[Shortage]:
        """Returns the shortages by the known ledger. Raises Busy where none is known."""
        return shortages(self.known() or await self.read(), charge)

    def last_shortages(self, entry: Entry) -> list[Shortage]:
        """Returns the shortages by the last read, for callers that another ledger refuses anyway."""
        return [] if self._stored is None else shortages(self._stored.ledger, entry.charge)

    # --- rounds -------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._rounds(), name="write a ledger")

    async def _rounds(self) -> None:
        while self._waiting or self._to_release:
            await self._wait_for_turn()
            attempts, self._waiting = self._waiting, []
            attempts = [each for each in attempts if not each.outcome.done() and not self._is_late(each)]
            try:
                left = await self._round(attempts)
            except (NoAnswerError, LedgerError) as error:
                self._outdated = self._stored
                left = self._after_failure(attempts, error)
                await asyncio.sleep(_RETRY_S)
            except Exception as bug:  # noqa: BLE001  (all callers get it, or they would wait for ever)
                self._outdated, left = self._stored, []
                self._to_release.clear()  # these reservations expire; a retry might fail for ever
                for attempt in attempts:
                    _fail(attempt, bug)
            self._waiting = left + self._waiting

    async def _wait_for_turn(self) -> None:
        """Waits for our turn, which comes early once the replica before us has written. All calls that arrive
        meanwhile share our write.
        """
        while (left := self._rotation.wait_s(self._clock())) > 0:
            await self._wait_for_change(left)

    async def _wait_for_change(self, within_s: float) -> None:
        """Waits for a change by another writer, at most this long."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._changed.wait()

    def _is_late(self, attempt: ReservationAttempt) -> bool:
        late = self._clock() - attempt.started > PATIENCE_S
        if late:
            _fail(attempt, Busy("quota is under heavy load"))
        return late

    def _after_failure(self, attempts: list[ReservationAttempt], error: Exception) -> list[ReservationAttempt]:
        """Handles a failed write, returns the attempts to retry. The write may be stored, so a reservation that is
        found later is not known to be made by the call.
        """
        self._to_release.clear()
        for attempt in attempts:
            attempt.is_unsure = True
            if isinstance(error, LedgerError):
                _fail(attempt, Busy(str(error)))
        return [each for each in attempts if not each.outcome.done()]

    async def _round(self, attempts: list[ReservationAttempt]) -> list[ReservationAttempt]:
        """Makes one write for these attempts; returns those that must be tried again."""
        stored = self._replaceable() or await self._read()
        self._to_release &= stored.ledger.reservations.keys()
        results = self._apply(stored.ledger, attempts)
        if any(attempt.started > self._read_at for attempt, _ in results.refused):
            stored = await self._read()
            results = self._apply(stored.ledger, attempts)
        if results.ledger is not stored.ledger and not await self._write(results.ledger, stored):
            if self._replaceable() is None:
                await self._wait_for_change(_RETRY_S)  # a watch brings the faster writer's version cheaper than a read
            return [each for each in attempts if not each.outcome.done()]
        _answer(results)
        return []

    def _apply(self, ledger: Ledger, attempts: list[ReservationAttempt]) -> _Results:
        if self._to_release:
            ledger = without(ledger, self._to_release)
        results, batch = _Results(ledger), ReservationBatch(ledger, self._max_of_namespace)
        for attempt in attempts:
            try:
                _check_owner(ledger, attempt.quota_uid)
                is_new = batch.reserve(attempt.uid, attempt.entry)
            except (Exceeded, Busy) as why:
                results.refused.append((attempt, why))
            else:
                results.reserved.append((attempt, is_new and not attempt.is_unsure))
        results.ledger = batch.ledger
        return results

    def _replaceable(self) -> StoredLedger | None:
        """Returns the version to replace. A watched version is enough for that, but a refusal needs its own read."""
        newest = self._newest()
        return None if newest is self._outdated else newest

    def _newest(self) -> StoredLedger | None:
        watched, stored = self._watched, self._stored
        if watched is not None and (stored is None or is_newer(watched.version, stored.version)):
            self._stored = watched.read()
        self._watched = None
        return self._stored

    def _remember(self, stored: StoredLedger) -> None:
        """Remembers the ledger of an answer, unless a watch has brought a newer one already."""
        known = self._newest()
        if known is None or not is_newer(known.version, stored.version):
            self._stored = stored

    async def _read(self) -> StoredLedger:
        began = self._clock()
        stored = await self._ledgers.read(self._name, _CALL_S)
        if stored is None:
            raise LedgerError(USAGE_UNKNOWN)
        self._remember(stored)
        self._read_at = began
        return stored

    async def _write(self, ledger: Ledger, replaced: StoredLedger) -> bool:
        began = self._clock()
        released = set(self._to_release)
        written = await self._ledgers.write(self._name, ledger, replaced, _CALL_S, writer=self._rotation.me)
        self._rotation.record_duration(self._clock() - began)
        if written is None:
            self._outdated = replaced
            return False
        self._remember(written)
        self._rotation.record_write(self._rotation.me, self._clock())
        self._read_at = began
        self._to_release -= released
        return True


def _check_owner(ledger: Ledger, quota_uid: str) -> None:
    """Raises Busy for the ledger of another quota of the same name, which its leader has not taken over yet."""
    if ledger.quota_uid != quota_uid:
        raise Busy(USAGE_UNKNOWN)


def _answer(results: _Results) -> None:
    for attempt, is_own in results.reserved:
        if not attempt.outcome.done():  # its caller may be cancelled
            attempt.outcome.set_result(is_own)
    for attempt, why in results.refused:
        _fail(attempt, why)


def _fail(attempt: ReservationAttempt, why: Exception) -> None:
    if not attempt.outcome.done():
        attempt.outcome.set_exception(why)
