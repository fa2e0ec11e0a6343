"""Decides which replica writes a ledger next: replicas take turns, so that fewer writes conflict.

Turns are an optimisation and no lock: a write out of turn is still subject to compare-and-set.
"""

from __future__ import annotations

from typing import Final

_SHORTEST_S, _LONGEST_S = 0.03, 0.3
"""Of a turn that nobody takes: who is skipped too early writes at the same time as the next."""

_WRITES: Final = 3
"""So many of ours fit into such a turn: one that waits for the processor takes twice as long, and has to be seen."""

_WEIGHT: Final = 0.2
_GONE_S: Final = 1.0
"""Who has not written for so long is not waited for."""


class WriteRotation:
    """The turns of one ledger from the view of the writer `me`. All times are of one clock."""

    def __init__(self, me: str) -> None:
        self.me = me
        self._last = me
        self._at: dict[str, float] = {}
        self._turn_s = _SHORTEST_S

    def wrote(self, who: str, now: float) -> None:
        """Records a write by any replica."""
        self._last = who
        self._at[who] = now

    def took(self, seconds: float) -> None:
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
        """How many come between the last one and us."""
        all_round = sorted({*self._at, self.me})
        return (all_round.index(self.me) - all_round.index(self._last) - 1) % len(all_round)
