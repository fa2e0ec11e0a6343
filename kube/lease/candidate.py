"""Who leads: what one candidate may conclude from what it saw of a Lease, and from when it saw that. Pure.

The law: at no moment may two decide, whatever is delayed, lost or repeated on the way. Nothing is asked of clocks but
that they run equally fast: times are each candidate's own monotonic ones.
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
    """What one candidate knows; every method that learns something gives the next one.

    Attributes:
        me: a name that nobody else has, also nobody who comes later.
        lease: as last seen; None where there is none.
        since: when that version was first seen.
        known: False as long as the Lease may have changed by a write of our own.
        renewed: when the last renewal that succeeded was sent.
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
        """What to do with a Lease that was just looked at, or is ours."""
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
        """Another version, or none at all, is a sign of life of somebody."""
        return replace(self, lease=lease, since=self.since if lease == self.lease else now, known=True)

    def writing(self) -> Candidate:
        """Until the answer is there, the Lease may be the old one or the new one."""
        return replace(self, known=False)

    def wrote(self, lease: Lease, sent: float, now: float) -> Candidate:
        return replace(self.saw(lease, now), renewed=sent if lease.holder == self.me else -math.inf)

    def outrun(self) -> Candidate:
        """Somebody else changed the Lease: we decide nothing until we have seen and renewed it."""
        return replace(self, known=False, renewed=-math.inf)
