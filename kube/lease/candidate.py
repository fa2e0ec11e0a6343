"""Leader election: what one candidate concludes from the Leases that it saw, and when it saw them. Pure.

Invariant: no two candidates decide at the same moment, whatever is delayed, lost or repeated. Clocks only need to run
at the same rate: all times are each candidate's own monotonic times.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

NEW_LEASE_HOLDER: Final = "nobody-yet"
"""Holds a Lease that was just made: who held the one before it, if somebody deleted that, has to fall silent first."""


class LeaseTimings(NamedTuple):
    """Seconds.

    Attributes:
        lasts_s: unchanged for so long, a Lease may be taken.
        decides_s: so long after sending a renewal that succeeded its holder may decide: less than the Lease lasts.
        renews_s: from one round to the next.
        rests_s: from a takeover that failed to the next try.
    """

    duration_s: float = 15.0
    decides_for_s: float = 10.0
    renew_every_s: float = 2.5
    retry_after_s: float = 5.0


class Lease(NamedTuple):
    """Attributes:
    holder: empty where it was given back.
    """

    holder: str
    version: str


class LeaseAction(enum.Enum):
    CREATE = enum.auto()
    TAKE = enum.auto()
    RENEW = enum.auto()
    WAIT = enum.auto()


@dataclass(frozen=True, slots=True)
class Candidate:
    """The knowledge of one candidate; every method that learns something returns the next value.

    Attributes:
        me: a name that no other candidate has, now or later.
        lease: the last Lease seen; None where there is none.
        since: when that version was first seen.
        known: False while the Lease may have changed by an unanswered write of ours.
        renewed: when the last successful renewal was sent.
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
        """Only a holder knows the Lease without looking: others cannot have changed it."""
        return not (self.is_current and self.is_holder)

    def decide(self, now: float) -> LeaseAction:
        """Decides what to do with a Lease that was just read, or is ours."""
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
        """Records a Lease; a new version, or a missing Lease, proves that another candidate is alive."""
        return replace(self, lease=lease, unchanged_since=self.unchanged_since if lease == self.lease else now, is_current=True)

    def with_pending_write(self) -> Candidate:
        """Records that a write was sent: until it is answered, the Lease may be the old one or the new one."""
        return replace(self, is_current=False)

    def with_written(self, lease: Lease, sent: float, now: float) -> Candidate:
        return replace(self.with_lease(lease, now), renewed_at=sent if lease.holder == self.identity else -math.inf)

    def with_conflict(self) -> Candidate:
        """Records that another candidate changed the Lease: we decide nothing until we have read and renewed it."""
        return replace(self, is_current=False, renewed_at=-math.inf)
