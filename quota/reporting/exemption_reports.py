"""Begins and ends exemptions of quotas at their times, and reports both in Events; run by the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from halfcard.quota.budgets import Budget
from halfcard.quota.gpu_quota import Exemption
from kube.api.calls import NoAnswerError

from ..ledgers_controller import LedgersController
from .quota_events import QuotaEvents

_EVERY_S: Final = 1.0


class ExemptionReports:
    """Attributes:
    trouble: the last failure, in one sentence.
    """

    def __init__(self, ledgers: LedgersController, events: QuotaEvents, may_decide: Callable[[], bool]) -> None:
        self.trouble = ""
        self._ledgers = ledgers
        self._events = events
        self._may_decide = may_decide
        self._reported: dict[str, tuple[Budget, Exemption]] = {}

    def count(self) -> float:
        return len(self._exempt()) if self._may_decide() else 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            if self._may_decide():
                self._ledgers.time_passed()
                await self._report(self._exempt())

    def _exempt(self) -> Mapping[str, tuple[Budget, Exemption]]:
        """Returns the exempted quotas by the uid of the object: a default is one object for all its namespaces."""
        exempt = [controller.budget for controller in self._ledgers.controllers.values() if controller.is_exempt]
        return {each.reference["uid"]: (each, each.exemption) for each in exempt if each.exemption is not None}

    async def _report(self, exempt: Mapping[str, tuple[Budget, Exemption]]) -> None:
        self.trouble = ""
        try:
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
        except NoAnswerError as error:
            self.trouble = str(error)
