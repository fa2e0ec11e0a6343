"""Refreshes the expected pods, which decide the value of nodes: learnt as pods come, refreshed now and then and at a
takeover.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ..scheduler_api.answer_cache import AnswerCache
from ..state import State
from .policy_cache import PolicyCache
from .workload_stats import WorkloadStats

_RENEW_EVERY_S: Final = 600.0
_ADAPT_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class PolicyRefresh:
    """`renew` and `adapt` are its jobs; `notes` are those on the Lease, and `leads` says whether they are ours."""

    state: State
    answers: AnswerCache
    stats: WorkloadStats
    policies: PolicyCache
    notes: Callable[[], Mapping[str, str]]
    leads: Callable[[], bool]

    async def refresh(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_EVERY_S)
            if self.leads():
                self._apply()
            else:
                self.load()

    def load(self) -> None:
        """Replaces the mix of the initial list, which counted only running pods, by the one on the Lease."""
        self.stats.load(self.notes())
        self._apply()

    def _apply(self) -> None:
        self.policies.clear()
        self.answers.policy_changed()

    async def adapt(self) -> None:
        """Looking at 5,000 nodes takes some 20 ms, so this is not done after each bind."""
        looked = -1
        while True:
            await asyncio.sleep(_ADAPT_EVERY_S)
            if looked != (looked := self.state.changes.now) and self.policies.adapt():
                self.answers.policy_changed()
