"""Refreshes the policies with the expected pods: every ten minutes, and at a takeover with those on the Lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ..state import State
from .policy_cache import PolicyCache
from .workload_stats import WorkloadStats

_REFRESH_EVERY_S: Final = 600.0
_ADAPT_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class PolicyRefresh:
    """The background tasks `refresh` and `adapt`.

    Attributes:
        on_change: called after the policies have changed.
        notes: the notes on the Lease, which this replica wrote itself while it `leads`.
    """

    state: State
    on_change: Callable[[], None]
    stats: WorkloadStats
    policies: PolicyCache
    notes: Callable[[], Mapping[str, str]]
    leads: Callable[[], bool]

    async def refresh(self) -> None:
        while True:
            await asyncio.sleep(_REFRESH_EVERY_S)
            if self.leads():
                self._apply()
            else:
                self.load()

    def load(self) -> None:
        """Replaces the mix of the initial list, which counted only existing pods, by the one on the Lease."""
        self.stats.load(self.notes())
        self._apply()

    def _apply(self) -> None:
        self.policies.clear()
        self.on_change()

    async def adapt(self) -> None:
        """Adapts the policies to the cluster; not after each bind, because 5,000 nodes take some 20 ms."""
        seen = -1
        while True:
            await asyncio.sleep(_ADAPT_EVERY_S)
            if seen != (seen := self.state.changes.now) and self.policies.adapt():
                self.on_change()
