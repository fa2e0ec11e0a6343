"""Leader election: what a candidate may conclude from the Leases that it read, and when it read them. Pure.

Invariant: no two candidates decide at the same moment, whatever is delayed, lost or repeated. Clocks only need to run
at the same rate: all times are each candidate's own monotonic times.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

NEW_LEASE_HOLDER: Final = "nobody-yet"
"""The holder of a new Lease: if an earlier Lease was deleted, the term of its holder must end first."""


class LeaseTimings(NamedTuple):
    """The times of leader election.

    Attributes:
        duration_s: a Lease that has not changed for so long may be taken.
        decides_for_s: how long the holder may decide after it sent a successful renewal; less than `duration_s`.
        renew_every_s: from one round to the next.
        retry_after_s: from a failed takeover to the next try.
    """

    duration_s: float = 15.0
    decides_for_s: float = 10.0
    renew_every_s: float = 2.5
    retry_after_s: float = 5.0


class Lease(NamedTuple):
    """The holder of a Lease, empty after a release, and the version of the object."""

    holder: str
    version: str


class LeaseAction(enum.Enum):
    CREATE = enum.auto()
    TAKE = enum.auto()
    RENEW = enum.auto()
    WAIT = enum.auto()


@dataclass(frozen=True, slots=True)
class Candidate:
    """The knowledge of one candidate; the methods `with_…` return the next value.

    Attributes:
        identity: a name that no other candidate ever has.
        lease: the last Lease that was read; None where none exists.
        unchanged_since: when this version was first read.
        is_current: False while an unanswered write may have changed the Lease.
        renewed_at: when the last successful renewal was sent.
    """

    identity: str
    rules: LeaseTimings
    lease: Lease | None = None
    unchanged_since: float = -math.inf
    is_current: bool = False
    renewed_at: float = -math.inf

    @property
    def is_holder(self) -> bool:
        return self.lease is not None and self.lease.holder == self.identity

    @property
    def must_read(self) -> bool:
        """Returns whether the Lease must be read first; only its holder knows it, since no other can change it."""
        return not (self.is_current and self.is_holder)

    def decide(self, now: float) -> LeaseAction:
        """Decides what to do with a Lease that was just read, or that this candidate holds."""
        if self.lease is None:
            return LeaseAction.CREATE
        if self.is_holder:
            return LeaseAction.RENEW
        if not self.lease.holder or now - self.unchanged_since >= self.rules.duration_s:
            return LeaseAction.TAKE
        return LeaseAction.WAIT

    def may_decide(self, now: float) -> bool:
        return self.is_holder and now - self.renewed_at < self.rules.decides_for_s

    def with_lease(self, lease: Lease | None, now: float) -> Candidate:
        """Records a Lease that was read; a new version, or a missing Lease, proves that another candidate is alive."""
        return replace(
            self, lease=lease, unchanged_since=self.unchanged_since if lease == self.lease else now, is_current=True
        )

    def with_pending_write(self) -> Candidate:
        """Records that a write was sent: until it is answered, the Lease may be the old one or the new one."""
        return replace(self, is_current=False)

    def with_written(self, lease: Lease, sent: float, now: float) -> Candidate:
        return replace(self.with_lease(lease, now), renewed_at=sent if lease.holder == self.identity else -math.inf)

    def with_conflict(self) -> Candidate:
        """Records that another candidate changed the Lease: no decision until it is read and renewed."""
        return replace(self, is_current=False, renewed_at=-math.inf)
