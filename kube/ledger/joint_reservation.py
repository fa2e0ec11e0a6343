"""Reserves in several ledgers: in all of them, or in none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from halfcard.quota.ledger import Busy, Entry, Exceeded

from .ledger_writer import LedgerWriter
from .reservation_attempts import MayChange

_T = TypeVar("_T")


async def _no_check() -> None: ...


class LedgerCharge(NamedTuple):
    """The charge of one pod in one ledger.

    Attributes:
        quota_uid: the uid of the quota that the ledger must belong to.
        check: awaited before anything is reserved; raises like `LedgerWriter.reserve`.
    """

    writer: LedgerWriter
    entry: Entry
    quota_uid: str
    check: Callable[[], Awaitable[None]] = _no_check


class Reservation(NamedTuple):
    """One pod's reservations in several ledgers, under one name."""

    name: str
    writers: Sequence[LedgerWriter]

    def release(self) -> None:
        """Releases them all; only where it is certain that the pod was not stored, or not bound."""
        for writer in self.writers:
            writer.release(self.name)


class NotReservedError(Exception):
    """One ledger refused, so that what is reserved is released; `at` is its position."""

    def __init__(self, at: int, why: Exceeded | Busy) -> None:
        super().__init__(at, why)
        self.at = at
        self.why = why


async def reserve_in_all(
    name: str, charges: Sequence[LedgerCharge], *, is_unique: bool = False, until: float | None = None
) -> Reservation:
    """Reserves under one name in each ledger, once all checks have passed; waits `until` a time of the event loop.
    After any failure it releases what it has reserved.

    It waits for the first ledger before it holds anything, and then tries all others at once. Where one of them has no
    room yet, it releases those after it and waits in order: in one order calls never wait for each other in a circle.

    The result has only the reservations that this call made: another call for the same pod may have made the others.
    Where no other call uses the name, it `is_unique`, and the result has them all, also those of lost answers.

    Raises:
        NotReservedError: a ledger refused.
    """
    making = _Making(name, charges, is_unique, until)
    try:
        for at, charge in enumerate(charges):
            await _refused_at(at, charge.check())
        await making.reserve_in_order(0, min(1, len(charges)))
        if (refused := await making.try_all(1)) is not None:
            making.release_from(refused)
            await making.reserve_in_order(refused, len(charges))
    except BaseException:
        making.release_from(0)
        raise
    return Reservation(name, [charges[at].writer for at in sorted(making.made)])


@dataclass(slots=True)
class _Making:
    """The reservations of one call while they are made; `made` has the positions of those to release."""

    name: str
    charges: Sequence[LedgerCharge]
    is_unique: bool
    until: float | None
    made: set[int] = field(default_factory=set)

    async def reserve_in_order(self, first: int, end: int) -> None:
        for at in range(first, end):
            await self._reserve(at, waits=self.until is not None)

    async def try_all(self, first: int) -> int | None:
        """Tries ledgers at once; returns the first one that may have room later, or None if all have it now."""
        trying = [self._reserve(at, waits=False) for at in range(first, len(self.charges))]
        results = await asyncio.gather(*trying, return_exceptions=True)
        failures = [each for each in results if isinstance(each, BaseException)]
        for each in failures:
            if self.until is None or not (isinstance(each, NotReservedError) and isinstance(each.why, MayChange)):
                raise each
        return min((each.at for each in failures if isinstance(each, NotReservedError)), default=None)

    async def _reserve(self, at: int, *, waits: bool) -> None:
        charge = self.charges[at]
        if self.is_unique:
            self.made.add(at)
        reserving = charge.writer.reserve(self.name, charge.entry, charge.quota_uid, self.until, waits=waits)
        if await _refused_at(at, reserving):
            self.made.add(at)

    def release_from(self, first: int) -> None:
        """Releases the reservations in this ledger and in those after it."""
        for at in [each for each in self.made if each >= first]:
            self.charges[at].writer.release(self.name)
            self.made.discard(at)


async def _refused_at(at: int, step: Awaitable[_T]) -> _T:
    try:
        return await step
    except (Exceeded, Busy) as why:
        raise NotReservedError(at, why) from why
