"""Reserves in several ledgers: in all of them, or in none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from halfcard.quota.ledger import Busy, Entry, Exceeded

from .ledger_writer import LedgerWriter


async def _no_check() -> None: ...


class LedgerCharge(NamedTuple):
    """The charge of one pod in one ledger.

    Attributes:
        quota_uid: the uid of the quota that the ledger must belong to.
        check: awaited before the charge is reserved; raises like `LedgerWriter.reserve`.
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
    """One ledger refused, so that nothing is reserved; `at` is its position."""

    def __init__(self, at: int, why: Exceeded | Busy) -> None:
        super().__init__(at, why)
        self.at = at
        self.why = why


async def reserve_in_all(name: str, charges: Sequence[LedgerCharge], *, is_unique: bool = False) -> Reservation:
    """Reserves under one name in each ledger, in order. After any failure it releases what it has reserved.

    The result has only the reservations that this call made: another call for the same pod may have made the others.
    Where no other call uses the name, it `is_unique`, and the result has them all.

    Raises:
        NotReservedError: a ledger refused.
    """
    reservation = Reservation(name, writers := [])
    for at, charge in enumerate(charges):
        try:
            await charge.check()
            is_new = await charge.writer.reserve(name, charge.entry, charge.quota_uid)
        except BaseException as error:
            reservation.release()
            if isinstance(error, Exceeded | Busy):
                raise NotReservedError(at, error) from error
            raise
        if is_new or is_unique:
            writers.append(charge.writer)
    return reservation
