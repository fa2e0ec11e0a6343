"""Decides when a reservation expires: its pod was not stored, and can no longer be stored.

Invariant: a create that was admitted ends within 34 seconds in which the API server could work, however long these take
on a clock. The age of a reservation therefore advances only while our reads succeed, and then two reads must show that
the pod is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from .ledger import Amounts, Ledger, shortages, without

OLD_S: Final = 45.0
APART_S: Final = 10.0
STEP_S: Final = 5.0
"""Two successful reads advance the age by at most this: between them the API server may have been unavailable."""

CERTAIN_S: Final = 65.0
"""By then a reservation is settled while the API server works: `OLD_S`, `APART_S`, and three looks of the leader."""

IN_CALL_S: Final = 3.0
"""Longer than a call keeps a reservation that it then releases, or that is committed, if nothing is lost."""


def settled_in_s(ledger: Ledger, charge: Amounts, ages: Mapping[str, float]) -> float:
    """Returns when a charge that does not fit will fit, or certainly does not: soon if only reservations of calls in
    progress are in the way. Reservations without an age are new.
    """
    old = {name: age for name in ledger.reservations if (age := ages.get(name, 0.0)) >= IN_CALL_S}
    if shortages(without(ledger, ledger.reservations.keys() - old), charge):
        return max(CERTAIN_S - min(old.values(), default=CERTAIN_S), IN_CALL_S)
    return IN_CALL_S


class OpenReservations(NamedTuple):
    """The ages of all reservations of one ledger. Times are seconds in which reads succeeded.

    Attributes:
        now: the present time.
        read_at: when the last read began, by a monotonic clock; None after a failed read.
        seen_since: when each reservation was first seen.
        missing_since: when the pods of old reservations were first missing.
    """

    now: float = 0.0
    read_at: float | None = None
    seen_since: Mapping[str, float] = {}
    missing_since: Mapping[str, float] = {}

    def due_for_look(self) -> frozenset[str]:
        """Returns reservations that may be old at the next read, which must therefore look for their pods."""
        return frozenset(uid for uid, first in self.seen_since.items() if self.now + STEP_S - first >= OLD_S)

    def failed(self) -> OpenReservations:
        """Returns the ages after a read without an answer."""
        return self._replace(read_at=None)

    def read(self, began: float, uids: Collection[str], stored: Collection[str]) -> OpenReservations:
        """Returns the ages after a quorum read; `uids` are the reservations of the ledger as it was before the read,
        `stored` those whose pods were found.
        """
        now = self.now + (0.0 if self.read_at is None else min(began - self.read_at, STEP_S))
        seen_since = {uid: self.seen_since.get(uid, now) for uid in uids}
        old = [uid for uid, first in seen_since.items() if now - first >= OLD_S and uid not in stored]
        return OpenReservations(now, began, seen_since, {uid: self.missing_since.get(uid, now) for uid in old})

    def expired(self) -> frozenset[str]:
        """Returns the reservations to release."""
        return frozenset(uid for uid, first in self.missing_since.items() if self.now - first >= APART_S)
