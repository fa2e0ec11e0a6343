"""Begins and ends exemptions of quotas at their times, and reports both in Events; run by the leader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from halfcard.quota.budgets import Budget
from halfcard.quota.gpu_quota import Exemption

from ..ledgers_controller import LedgersController
from .quota_events import QuotaEvents
from .report_job import ReportJob

_EVERY_S: Final = 1.0


class ExemptionReports(ReportJob):
    def __init__(self, ledgers: LedgersController, events: QuotaEvents, may_decide: Callable[[], bool]) -> None:
        super().__init__(may_decide, _EVERY_S)
        self._ledgers = ledgers
        self._events = events
        self._reported: dict[str, tuple[Budget, Exemption]] = {}

    def count(self) -> float:
        return len(self._exempt()) if self._may_decide() else 0

    def _exempt(self) -> Mapping[str, tuple[Budget, Exemption]]:
        """Returns the exempted quotas by the uid of the object: a default is one object for all its namespaces."""
        exempt = [controller.budget for controller in self._ledgers.controllers.values() if controller.is_exempt]
        return {each.reference["uid"]: (each, each.exemption) for each in exempt if each.exemption is not None}

    async def report(self) -> None:
        self.trouble = ""
        self._ledgers.time_passed()
        exempt = self._exempt()
        for uid, (budget, exemption) in exempt.items():
            if self._reported.get(uid, (budget, None))[1] != exemption:
                message = f"the quota limits nothing {exemption}"
                self.trouble = await self._events.send(budget.reference, "Exempt", message)
                self._reported[uid] = budget, exemption
        for uid in self._reported.keys() - exempt.keys():
            budget, _ = self._reported[uid]
            message = "the quota limits pods again"
            self.trouble = await self._events.send(budget.reference, "ExemptionEnded", message, is_warning=False)
            del self._reported[uid]
