"""Decides which replica writes a ledger next: replicas take turns, so that fewer writes conflict.

Turns are an optimisation and no lock: a write out of turn is still subject to compare-and-set.
"""

from __future__ import annotations

from typing import Final

_SHORTEST_S, _LONGEST_S = 0.03, 0.3
"""Limits of a turn that a replica does not use. Where it is too short, that replica and the next write together."""

_WRITES: Final = 3
"""Such a turn is as long as this number of our writes: a write of a busy replica takes twice as long."""

_WEIGHT: Final = 0.2
_GONE_S: Final = 1.0
"""A replica that has not written for this long has no turn."""


class WriteRotation:
    """The turns of one ledger from the view of the writer `me`. All times are of one clock."""

    def __init__(self, me: str) -> None:
        self.me = me
        self._last = me
        self._at: dict[str, float] = {}
        self._turn_s = _SHORTEST_S

    def record_write(self, who: str, now: float) -> None:
        """Records a write by any replica."""
        self._last = who
        self._at[who] = now

    def record_duration(self, seconds: float) -> None:
        """Records the duration of one of our writes."""
        smoothed = (1 - _WEIGHT) * self._turn_s + _WEIGHT * _WRITES * seconds
        self._turn_s = min(max(smoothed, _SHORTEST_S), _LONGEST_S)

    def wait_s(self, now: float) -> float:
        """Returns how long to wait for our turn; 0 when it has come."""
        self._at = {who: at for who, at in self._at.items() if now - at < _GONE_S}
        if self._last not in self._at:
            return 0.0
        return max(0.0, self._at[self._last] + min(self._before_me() * self._turn_s, _GONE_S) - now)

    def _before_me(self) -> int:
        """Returns how many replicas have their turn between the last writer and us."""
        replicas = sorted({*self._at, self.me})
        return (replicas.index(self.me) - replicas.index(self._last) - 1) % len(replicas)
