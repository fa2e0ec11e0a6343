"""Begins and ends exemptions of quotas at their times, and reports both in Events; run by the leader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from halfcard.quota.budgets import Budget

from ..ledgers_controller import LedgersController
from .quota_events import QuotaEvents
from .report_job import ReportJob

_EVERY_S: Final = 1.0


class ExemptionReports(ReportJob):
    def __init__(self, ledgers: LedgersController, events: QuotaEvents, may_decide: Callable[[], bool]) -> None:
        super().__init__(may_decide, _EVERY_S)
        self._ledgers = ledgers
        self._events = events
        self._reported: dict[str, Budget] = {}

    def count(self) -> float:
        return len(self._exempt()) if self._may_decide() else 0

    def _exempt(self) -> Mapping[str, Budget]:
        """Returns the exempted quotas by the uid of the object: a default is one object for all its namespaces."""
        exempt = [controller.budget for controller in self._ledgers.controllers.values() if controller.is_exempt]
        return {budget.reference["uid"]: budget for budget in exempt}

    async def report(self) -> None:
        self.trouble = ""
        self._ledgers.time_passed()
        exempt = self._exempt()
        for uid, budget in exempt.items():
            reported = self._reported.get(uid)
            if reported is None or reported.exemption != budget.exemption:
                message = f"the quota limits nothing {budget.exemption}"
                self.trouble = await self._events.send(budget.reference, "Exempt", message)
                self._reported[uid] = budget
        for uid in self._reported.keys() - exempt.keys():
            about, message = self._reported[uid].reference, "the quota limits pods again"
            self.trouble = await self._events.send(about, "ExemptionEnded", message, is_warning=False)
            del self._reported[uid]
