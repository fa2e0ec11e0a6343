"""Reports ledgers that were wrong and have been repaired: in Events at their quotas, and in a metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from halfcard.quota.budgets import Budget

from ..consistency_check import Difference, Differences, summary
from .quota_events import QuotaEvents
from .report_job import ReportJob

_EVERY_S: Final = 2.0
_MOST_WAITING: Final = 100


class RepairReports(ReportJob):
    """Reports also when this replica has just stopped leading: it made the repairs.

    Attributes:
        count: repairs since this replica started.
    """

    def __init__(self, events: QuotaEvents, budgets_of: Callable[[str], Sequence[Budget]]) -> None:
        super().__init__(lambda: True, _EVERY_S)
        self.count = 0
        self._events = events
        self._budgets_of = budgets_of
        self._waiting: dict[str, tuple[Budget, str]] = {}

    def ledger(self, budget: Budget, change: str) -> None:
        """Reports that another writer had changed the committed amounts."""
        self._repaired(budget, f"its ledger said {change}; it has been corrected")

    def pods(self, found: Differences) -> None:
        """Reports pods whose count differed from what is stored."""
        concerned: dict[str, tuple[Budget, dict[str, Difference]]] = {}
        for uid, each in found.items():
            for budget in self._budgets_of(each.namespace):
                concerned.setdefault(budget.ledger, (budget, {}))[1][uid] = each
        for budget, its_pods in concerned.values():
            self._repaired(budget, summary(its_pods))

    def _repaired(self, budget: Budget, message: str) -> None:
        self.count += 1
        if budget.uid and len(self._waiting) < _MOST_WAITING:
            self._waiting[budget.ledger] = budget, message

    async def report(self) -> None:
        self.trouble = ""
        waiting, self._waiting = self._waiting, {}
        for budget, message in waiting.values():
            self.trouble = await self._events.send(budget.reference, "Drifted", message)
