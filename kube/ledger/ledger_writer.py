"""Reserves in one ledger for many callers: all calls that arrive during a write share the next write.

Invariant: no call is admitted before the write with its reservation is stored, and none is refused on the basis of a
read that began before the call. A call that waits for other reservations is tried again after each change.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from halfcard.quota.ledger import (
    MAX_RESERVATIONS_OF_NAMESPACE,
    Amounts,
    Busy,
    Entry,
    Ledger,
    Shortage,
    Uncounted,
    lasting_shortages,
    reserve,
    shortages,
)
from halfcard.quota.reservation_expiry import settled_in_s

from ..api.calls import NoAnswerError
from .ledger_store import LedgerError, LedgerStore, StoredLedger, WatchedLedger, is_newer
from .reservation_attempts import ReservationAttempt, Results, apply, check_owner, unanswered
from .write_rotation import WriteRotation

PATIENCE_S: Final = 3.0
"""For calls without a deadline of their own."""

_CALL_S: Final = 2.0
_RETRY_S: Final = 0.02
"""Pause after a call without an answer, or after another writer was faster."""

_LOOK_EVERY_S: Final = 0.5
"""Calls that wait read the ledger so often where no watch reports a change."""

_PAUSE_S: Final = 0.05
"""Between two rounds only for calls that wait: each costs a decision for all of them."""

_MOST_FAILURES: Final = 30
"""In a row: then reservations that cannot be released are left to expire."""

_LONGEST_RETRY_S: Final = 2.0

Clock = Callable[[], float]


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
        self._blocked: list[ReservationAttempt] = []  # by other reservations
        self._failures = 0
        self._first_seen: dict[str, float] = {}
        self._to_release: set[str] = set()
        self._stored: StoredLedger | None = None
        self._outdated: StoredLedger | None = None  # another writer has replaced this version, or may have
        self._watched: WatchedLedger | None = None
        self._read_at = 0.0
        self._rotation = WriteRotation(secrets.token_hex(4))
        self._changed = asyncio.Event()
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def reserve(
        self, name: str, entry: Entry, quota_uid: str, until: float | None = None, *, waits: bool = False
    ) -> bool:
        """Reserves a charge under a name; returns whether this call made the reservation, or found it.

        It lasts `until` a time of the event loop at most, and `waits` so long while the ledger is not counted, or only
        other reservations are in the way. After any failure the reservation may be stored all the same.

        Raises:
            Exceeded: the charge does not fit.
            Busy: no certain answer was possible in time.
        """
        loop = asyncio.get_running_loop()
        attempt = ReservationAttempt(name, entry, quota_uid, self._clock(), waits, loop.create_future())
        self._waiting.append(attempt)
        self._work()
        try:
            async with asyncio.timeout_at(loop.time() + PATIENCE_S if until is None else until):
                return await attempt.outcome
        except TimeoutError:
            raise attempt.obstacle or Busy("quota is under heavy load") from None

    def ledger_changed(self, watched: WatchedLedger | None) -> None:
        """Records a change of the ledger, by any writer."""
        self._watched = watched
        if watched is not None and watched.writer != self._rotation.me:
            if watched.writer:
                self._rotation.record_write(watched.writer, self._clock())
            self._changed.set()
            self._woken.set()

    def release(self, uid: str) -> None:
        """Releases a reservation with the next write; if that fails, the reservation expires."""
        self._to_release.add(uid)
        self._work()

    async def check(self, entry: Entry, quota_uid: str) -> None:
        """Raises like `reserve`, and writes nothing."""
        ledger = await self.read()
        check_owner(ledger, quota_uid)
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
        """Returns the lasting shortages by the known ledger, for callers that another ledger refuses anyway."""
        known = self.known()
        return [] if known is None else lasting_shortages(known, entry.charge)

    def retry_s(self, entry: Entry) -> float:
        """Returns after how long a charge that other reservations leave no room for may be tried again."""
        known, now = self.known(), self._clock()
        if known is None:
            return _LOOK_EVERY_S
        return settled_in_s(known, entry.charge, {name: now - at for name, at in self._first_seen.items()})

    # --- rounds -------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        self._woken.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._rounds(), name="write a ledger")

    async def _rounds(self) -> None:
        while self._waiting or self._to_release or self._blocked:
            if not self._waiting and not self._to_release:
                await self._wait_until_woken()
                continue
            await self._wait_for_turn()
            attempts = unanswered([*self._blocked, *self._waiting])
            self._waiting, self._blocked = [], []
            try:
                left = await self._round(attempts)
                self._failures = 0
            except Uncounted as why:
                left = self._without_ledger(attempts, why)
            except (NoAnswerError, LedgerError) as error:
                self._outdated = self._stored
                left = self._after_failure(attempts, error)
                await asyncio.sleep(_RETRY_S if left or self._waiting else self._longer_retry_s())
            except Exception as bug:  # noqa: BLE001  (all callers get it, or they would wait for ever)
                self._outdated, left = self._stored, []
                self._to_release.clear()  # these reservations expire; a retry might fail for ever
                for attempt in attempts:
                    attempt.fail(bug)
            self._waiting = left + self._waiting

    async def _wait_until_woken(self) -> None:
        """Waits for a change, a call or a release; after a while without any, the next round reads the ledger."""
        try:
            async with asyncio.timeout(_LOOK_EVERY_S):
                await self._woken.wait()
                self._woken.clear()
        except TimeoutError:
            self._outdated = self._newest()
        await asyncio.sleep(_PAUSE_S)
        self._waiting, self._blocked = unanswered(self._blocked) + self._waiting, []

    def _longer_retry_s(self) -> float:
        return min(_RETRY_S * 2.0**self._failures, _LONGEST_RETRY_S)

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

    def _without_ledger(self, attempts: list[ReservationAttempt], why: Uncounted) -> list[ReservationAttempt]:
        """Handles a missing ledger, which the leader creates; returns no attempts to retry at once."""
        self._outdated = self._stored
        self._to_release.clear()
        for attempt in attempts:
            attempt.refuse(why)
        self._blocked = unanswered(attempts)
        return []

    def _after_failure(self, attempts: list[ReservationAttempt], error: Exception) -> list[ReservationAttempt]:
        """Handles a failed write, returns the attempts to retry. The write may be stored, so a reservation that is
        found later is not known to be made by the call.
        """
        self._failures += 1
        if self._failures > _MOST_FAILURES:
            self._to_release.clear()
        for attempt in attempts:
            attempt.is_unsure = True
            if isinstance(error, LedgerError):
                attempt.fail(Busy(str(error)))
        return unanswered(attempts)

    async def _round(self, attempts: list[ReservationAttempt]) -> list[ReservationAttempt]:
        """Makes one write for these attempts; returns those that must be tried again at once."""
        stored = self._replaceable() or await self._read()
        self._to_release &= stored.ledger.reservations.keys()
        results = self._apply(stored.ledger, attempts)
        if any(attempt.started > self._read_at for attempt, _ in results.refused):
            stored = await self._read()
            results = self._apply(stored.ledger, attempts)
        self._note_ages(stored.ledger)
        if results.ledger is not stored.ledger and not await self._write(results.ledger, stored):
            if self._replaceable() is None:
                await self._wait_for_change(_RETRY_S)  # a watch brings the faster writer's version cheaper than a read
            return unanswered(attempts)
        results.answer()
        self._blocked = unanswered(attempts)
        return []

    def _apply(self, ledger: Ledger, attempts: list[ReservationAttempt]) -> Results:
        return apply(ledger, self._to_release, attempts, self._max_of_namespace)

    def _note_ages(self, ledger: Ledger) -> None:
        now = self._clock()
        self._first_seen = {name: self._first_seen.get(name, now) for name in ledger.reservations}

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
            raise Uncounted
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
