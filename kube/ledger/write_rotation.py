"""Whose turn it is to write a ledger: the replicas that write to it go round, so that few outrun each other.

The law: these are manners and no lock. Whoever writes out of turn is refused by compare-and-set, as ever.
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
    """Of one ledger, as the writer `me` sees them. Times are those of one clock."""

    def __init__(self, me: str) -> None:
        self.me = me
        self._last = me
        self._at: dict[str, float] = {}
        self._turn_s = _SHORTEST_S

    def wrote(self, who: str, now: float) -> None:
        """As it is seen now."""
        self._last = who
        self._at[who] = now

    def took(self, seconds: float) -> None:
        """A write of ours."""
        smoothed = (1 - _WEIGHT) * self._turn_s + _WEIGHT * _WRITES * seconds
        self._turn_s = min(max(smoothed, _SHORTEST_S), _LONGEST_S)

    def wait_s(self, now: float) -> float:
        """Until it is ours; nothing where it has come."""
        self._at = {who: at for who, at in self._at.items() if now - at < _GONE_S}
        if self._last not in self._at:
            return 0.0
        return max(0.0, self._at[self._last] + min(self._before_me() * self._turn_s, _GONE_S) - now)

    def _before_me(self) -> int:
        """How many come between the last one and us."""
        all_round = sorted({*self._at, self.me})
        return (all_round.index(self.me) - all_round.index(self._last) - 1) % len(all_round)
