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
    release,
    reserve,
    shortages,
)

from ..api.calls import NoAnswerError
from .ledger_store import LedgerError, LedgerStore, StoredLedger, WatchedLedger, is_newer
from .write_rotation import WriteRotation

PATIENCE_S: Final = 3.0
"""The API server gives a webhook 5 s, and the answer has a way to go."""

_CALL_S: Final = 2.0
_AGAIN_S: Final = 0.02
"""Before another try where the API server did not answer, or somebody else was faster."""

Clock = Callable[[], float]


@dataclass(slots=True, eq=False)
class ReservationAttempt:
    """The attempt of one pod.

    Attributes:
        of: the uid of the quota that the ledger must belong to.
        came: when the call began, by our own clock.
        outcome: whether this call made the reservation, so that it may release it.
    """

    uid: str
    entry: Entry
    of: str
    came: float
    outcome: asyncio.Future[bool]
    is_unsure: bool = False


@dataclass(slots=True)
class _Settled:
    """The results of the attempts, valid once `ledger` is written."""

    ledger: Ledger
    reserved: list[ReservationAttempt] = field(default_factory=list)
    had: list[ReservationAttempt] = field(default_factory=list)
    refused: list[tuple[ReservationAttempt, Exceeded | Busy]] = field(default_factory=list)


class LedgerWriter:
    """Made on the event loop."""

    def __init__(
        self, ledgers: LedgerStore, name: str, clock: Clock, most_of_one: int = MAX_RESERVATIONS_OF_NAMESPACE
    ) -> None:
        self._most_of_one = most_of_one
        self._ledgers = ledgers
        self._name = name
        self._clock = clock
        self._waiting: list[ReservationAttempt] = []
        self._to_release: set[str] = set()
        self._kept: StoredLedger | None = None
        self._outdated: StoredLedger | None = None  # somebody else has written since, or may have
        self._seen: WatchedLedger | None = None
        self._as_of = 0.0
        self._turns = WriteRotation(secrets.token_hex(4))
        self._stirred = asyncio.Event()
        self._working: asyncio.Task[None] | None = None

    async def reserve(self, uid: str, entry: Entry, of: str) -> bool:
        """Reserves the charge of a pod; returns whether this call made the reservation, which may have existed before.

        Raises:
            Full: there is too little left.
            Busy: no certain answer was possible in time.
        """
        ask = ReservationAttempt(uid, entry, of, self._clock(), asyncio.get_running_loop().create_future())
        self._waiting.append(ask)
        self._work()
        return await ask.outcome

    def ledger_changed(self, seen: WatchedLedger | None) -> None:
        """Records a change of the ledger, by any writer."""
        self._seen = seen
        if seen is not None and seen.writer != self._turns.me:
            if seen.writer:
                self._turns.wrote(seen.writer, self._clock())
            self._stirred.set()

    def release(self, uid: str) -> None:
        """Releases a reservation with the next write; if that fails, the reservation expires."""
        self._to_release.add(uid)
        self._work()

    async def check(self, entry: Entry, of: str) -> None:
        """Raises like `reserve`, and writes nothing."""
        ledger = await self.read()
        _check_whose(ledger, of)
        reserve(ledger, "", entry, self._most_of_one)

    def known(self) -> Ledger | None:
        """Returns the last known ledger from any source, also while a write is retried."""
        kept = self._newest()
        return kept.ledger if kept is not None else None

    async def read(self) -> Ledger:
        """Reads the ledger by a call that begins now. Raises Busy where there is no answer."""
        try:
            return (await self._read()).ledger
        except (NoAnswerError, LedgerError) as error:
            raise Busy(str(error)) from error

    async def known_shortages(self, cost: Amounts) -> list[Shortage]:
        """Returns the shortages by the known ledger. Raises Busy where none is known."""
        return shortages(self.known() or await self.read(), cost)

    def last_shortages(self, entry: Entry) -> list[Shortage]:
        """Returns the shortages by the last read, for callers that another ledger refuses anyway."""
        return [] if self._kept is None else shortages(self._kept.ledger, entry.charge)

    # --- rounds -------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._rounds(), name="write a ledger")

    async def _rounds(self) -> None:
        while self._waiting or self._to_release:
            await self._turn()
            asks, self._waiting = self._waiting, []
            left = [ask for ask in asks if not ask.outcome.done() and not self._is_late(ask)]
            try:
                again = await self._round(left)
            except (NoAnswerError, LedgerError) as error:
                self._outdated = self._kept
                again = self._after_silence(left, error)
                await asyncio.sleep(_AGAIN_S)
            except Exception as bug:  # noqa: BLE001  (carried over to all who wait, or they would wait for ever)
                self._outdated, again = self._kept, []
                self._to_release.clear()  # they expire: tried again they might fail for ever
                for ask in left:
                    _fail(ask, bug)
            self._waiting = again + self._waiting

    async def _turn(self) -> None:
        """Comes sooner where who is before us has written; all who ask meanwhile share what we write then."""
        while (left := self._turns.wait_s(self._clock())) > 0:
            await self._news(left)

    async def _news(self, within_s: float) -> None:
        """Waits for a change by another writer, at most so long."""
        self._stirred.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._stirred.wait()

    def _is_late(self, ask: ReservationAttempt) -> bool:
        late = self._clock() - ask.came > PATIENCE_S
        if late:
            _fail(ask, Busy("quota is under heavy load"))
        return late

    def _after_silence(self, asks: list[ReservationAttempt], error: Exception) -> list[ReservationAttempt]:
        """Handles a write without an answer: it may be stored, so a reservation that is found then is not known to be
        this call's.
        """
        self._to_release.clear()
        for ask in asks:
            ask.is_unsure = True
            if isinstance(error, LedgerError):
                _fail(ask, Busy(str(error)))
        return [ask for ask in asks if not ask.outcome.done()]

    async def _round(self, asks: list[ReservationAttempt]) -> list[ReservationAttempt]:
        """Makes one write for these attempts; returns those that must be tried again."""
        kept = self._to_write_over() or await self._read()
        self._to_release &= kept.ledger.reservations.keys()
        settled = self._settle(kept.ledger, asks)
        if any(ask.came > self._as_of for ask, _ in settled.refused):
            kept = await self._read()
            settled = self._settle(kept.ledger, asks)
        if settled.ledger is not kept.ledger and not await self._write(settled.ledger, kept):
            if self._to_write_over() is None:
                await self._news(_AGAIN_S)  # of who was faster: a watch brings it for less than a read
            return [ask for ask in asks if not ask.outcome.done()]
        _tell(settled)
        return []

    def _settle(self, ledger: Ledger, asks: list[ReservationAttempt]) -> _Settled:
        for uid in self._to_release:
            ledger = release(ledger, uid)
        found, crowd = _Settled(ledger), ReservationBatch(ledger, self._most_of_one)
        for ask in asks:
            try:
                _check_whose(ledger, ask.of)
                is_new = crowd.reserve(ask.uid, ask.entry)
            except (Exceeded, Busy) as why:
                found.refused.append((ask, why))
            else:
                (found.reserved if is_new and not ask.is_unsure else found.had).append(ask)
        found.ledger = crowd.ledger
        return found

    def _to_write_over(self) -> StoredLedger | None:
        """Returns the version to replace. A watched version is enough for that, but a refusal needs its own read."""
        newest = self._newest()
        return None if newest is self._outdated else newest

    def _newest(self) -> StoredLedger | None:
        seen, kept = self._seen, self._kept
        if seen is not None and (kept is None or is_newer(seen.version, kept.version)):
            self._kept = seen.read()
        self._seen = None
        return self._kept

    def _keep(self, kept: StoredLedger) -> None:
        """A watch may be faster than an answer."""
        known = self._newest()
        if known is None or not is_newer(known.version, kept.version):
            self._kept = kept

    async def _read(self) -> StoredLedger:
        began = self._clock()
        kept = await self._ledgers.read(self._name, _CALL_S)
        if kept is None:
            raise LedgerError(USAGE_UNKNOWN)
        self._keep(kept)
        self._as_of = began
        return kept

    async def _write(self, ledger: Ledger, over: StoredLedger) -> bool:
        began = self._clock()
        cancelled = set(self._to_release)
        written = await self._ledgers.write(self._name, ledger, over, _CALL_S, by=self._turns.me)
        self._turns.took(self._clock() - began)
        if written is None:
            self._outdated = over
            return False
        self._keep(written)
        self._turns.wrote(self._turns.me, self._clock())
        self._as_of = began
        self._to_release -= cancelled
        return True


def _check_whose(ledger: Ledger, of: str) -> None:
    if ledger.quota_uid != of:
        raise Busy(USAGE_UNKNOWN)


def _tell(settled: _Settled) -> None:
    for ask in settled.reserved:
        _succeed(ask, own=True)
    for ask in settled.had:
        _succeed(ask, own=False)
    for ask, why in settled.refused:
        _fail(ask, why)


def _succeed(ask: ReservationAttempt, *, own: bool) -> None:
    if not ask.outcome.done():  # its caller may have gone
        ask.outcome.set_result(own)


def _fail(ask: ReservationAttempt, why: Exception) -> None:
    if not ask.outcome.done():
        ask.outcome.set_exception(why)
