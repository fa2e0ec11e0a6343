"""Decides when a reservation may be dropped: its pod was not stored, and can no longer be stored.

Invariant: a create that was admitted ends within 34 seconds of time in which the API server could work, however long
these take on a clock. Age therefore advances only while our reads succeed, and two reads without the pod must follow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

OLD_S: Final = 45.0
APART_S: Final = 10.0
STEP_S: Final = 5.0
"""Between two reads that succeeded so much at most counts: nobody knows what was in between."""


class OpenReservations(NamedTuple):
    """All of them that are open, in time that counts.

    Attributes:
        now: so much time has counted.
        read_at: when the last read began, by our own clock that never steps; None after one that failed.
        since: when each was first seen.
        missed: when the old ones were first not found.
    """

    now: float = 0.0
    read_at: float | None = None
    since: Mapping[str, float] = {}
    missed: Mapping[str, float] = {}

    def nearly_old(self) -> frozenset[str]:
        """Reservations that may be old at the next read, which must therefore look for their pods."""
        return frozenset(uid for uid, first in self.since.items() if self.now + STEP_S - first >= OLD_S)

    def failed(self) -> OpenReservations:
        """After a read without an answer."""
        return self._replace(read_at=None)

    def read(self, began: float, uids: Collection[str], stored: Collection[str]) -> OpenReservations:
        """After a read of all pods by a quorum; `uids` are the open ones of the ledger, as it was before the read."""
        now = self.now + (0.0 if self.read_at is None else min(began - self.read_at, STEP_S))
        since = {uid: self.since.get(uid, now) for uid in uids}
        old = [uid for uid, first in since.items() if now - first >= OLD_S and uid not in stored]
        return OpenReservations(now, began, since, {uid: self.missed.get(uid, now) for uid in old})

    def void(self) -> frozenset[str]:
        """Reservations that may be dropped."""
        return frozenset(uid for uid, first in self.missed.items() if self.now - first >= APART_S)
