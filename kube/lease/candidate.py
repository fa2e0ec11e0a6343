"""Leader election: what one candidate concludes from the Leases that it saw, and when it saw them. Pure.

Invariant: no two candidates decide at the same moment, whatever is delayed, lost or repeated. Clocks only need to run
at the same rate: all times are each candidate's own monotonic times.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

NOBODY_YET: Final = "nobody-yet"
"""Holds a Lease that was just made: who held the one before it, if somebody deleted that, has to fall silent first."""


class LeaseTimings(NamedTuple):
    """Seconds.

    Attributes:
        lasts_s: unchanged for so long, a Lease may be taken.
        decides_s: so long after sending a renewal that succeeded its holder may decide: less than the Lease lasts.
        renews_s: from one round to the next.
        rests_s: from a takeover that failed to the next try.
    """

    lasts_s: float = 15.0
    decides_s: float = 10.0
    renews_s: float = 2.5
    rests_s: float = 5.0


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

    me: str
    rules: LeaseTimings
    lease: Lease | None = None
    since: float = -math.inf
    known: bool = False
    renewed: float = -math.inf

    @property
    def holds(self) -> bool:
        return self.lease is not None and self.lease.holder == self.me

    @property
    def must_look(self) -> bool:
        """Only a holder knows the Lease without looking: others cannot have changed it."""
        return not (self.known and self.holds)

    def decide(self, now: float) -> LeaseAction:
        """Decides what to do with a Lease that was just read, or is ours."""
        if self.lease is None:
            return LeaseAction.CREATE
        if self.holds:
            return LeaseAction.RENEW
        if not self.lease.holder or now - self.since >= self.rules.lasts_s:
            return LeaseAction.TAKE
        return LeaseAction.WAIT

    def may_decide(self, now: float) -> bool:
        return self.holds and now - self.renewed < self.rules.decides_s

    def saw(self, lease: Lease | None, now: float) -> Candidate:
        """Records a Lease; a new version, or a missing Lease, proves that another candidate is alive."""
        return replace(self, lease=lease, since=self.since if lease == self.lease else now, known=True)

    def writing(self) -> Candidate:
        """Records that a write was sent: until it is answered, the Lease may be the old one or the new one."""
        return replace(self, known=False)

    def wrote(self, lease: Lease, sent: float, now: float) -> Candidate:
        return replace(self.saw(lease, now), renewed=sent if lease.holder == self.me else -math.inf)

    def outrun(self) -> Candidate:
        """Records that another candidate changed the Lease: we decide nothing until we have read and renewed it."""
        return replace(self, known=False, renewed=-math.inf)
