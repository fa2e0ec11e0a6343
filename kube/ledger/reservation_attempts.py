"""The calls that wait for a reservation in one ledger, and the results of one write for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from halfcard.quota.ledger import (
    Busy,
    Contended,
    Crowded,
    Entry,
    Exceeded,
    Ledger,
    ReservationBatch,
    Uncounted,
    without,
)

MayChange = Contended | Crowded | Uncounted
"""Why a call waits, if it does."""


@dataclass(slots=True, eq=False)
class ReservationAttempt:
    """One call that waits for its reservation.

    Attributes:
        quota_uid: the uid of the quota that the ledger must belong to.
        started: when the call began, by our own clock.
        waits: whether the call waits while the ledger is not counted, or only other reservations are in the way.
        outcome: whether this call made the reservation, so that it may release it.
        is_unsure: whether a write without an answer may have stored the reservation.
        obstacle: why the call waits.
    """

    name: str
    entry: Entry
    quota_uid: str
    started: float
    waits: bool
    outcome: asyncio.Future[bool]
    is_unsure: bool = False
    obstacle: MayChange | None = None

    def fail(self, why: Exception) -> None:
        if not self.outcome.done():  # its caller may be cancelled
            self.outcome.set_exception(why)

    def refuse(self, why: Exceeded | Busy) -> None:
        """Fails the call, unless it waits for this to change."""
        if self.waits and isinstance(why, MayChange):
            self.obstacle = why
        else:
            self.fail(why)


def unanswered(attempts: Iterable[ReservationAttempt]) -> list[ReservationAttempt]:
    return [each for each in attempts if not each.outcome.done()]


@dataclass(slots=True)
class Results:
    """The results of the attempts, valid once `ledger` is written."""

    ledger: Ledger
    reserved: list[tuple[ReservationAttempt, bool]] = field(default_factory=list)
    refused: list[tuple[ReservationAttempt, Exceeded | Busy]] = field(default_factory=list)

    def answer(self) -> None:
        for attempt, is_own in self.reserved:
            if not attempt.outcome.done():
                attempt.outcome.set_result(is_own)
        for attempt, why in self.refused:
            attempt.refuse(why)


def apply(
    ledger: Ledger, to_release: Collection[str], attempts: Sequence[ReservationAttempt], max_of_namespace: int
) -> Results:
    """Releases, then reserves in the order of the attempts, except for those that are answered already."""
    if to_release:
        ledger = without(ledger, to_release)
    results, batch = Results(ledger), ReservationBatch(ledger, max_of_namespace)
    for attempt in unanswered(attempts):
        try:
            check_owner(ledger, attempt.quota_uid)
            is_new = batch.reserve(attempt.name, attempt.entry)
        except (Exceeded, Busy) as why:
            results.refused.append((attempt, why))
        else:
            results.reserved.append((attempt, is_new and not attempt.is_unsure))
    results.ledger = batch.ledger
    return results


def check_owner(ledger: Ledger, quota_uid: str) -> None:
    """Raises Uncounted for the ledger of another quota of the same name, which its leader has not taken over yet."""
    if ledger.quota_uid != quota_uid:
        raise Uncounted
