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
    trouble: what went wrong last, in one sentence.
    """

    def __init__(self, keeping: LedgersController, events: QuotaEvents, may_decide: Callable[[], bool]) -> None:
        self.trouble = ""
        self._keeping = keeping
        self._events = events
        self._may_decide = may_decide
        self._told: dict[str, tuple[Budget, Exemption]] = {}

    def count(self) -> float:
        return len(self._exempt()) if self._may_decide() else 0

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            if self._may_decide():
                self._keeping.time_passed()
                await self._tell(self._exempt())

    def _exempt(self) -> Mapping[str, tuple[Budget, Exemption]]:
        """Returns the exempted quotas by the uid of the object: a default is one object for all its namespaces."""
        exempt = [keeper.budget for keeper in self._keeping.controllers.values() if keeper.is_exempt]
        return {each.reference["uid"]: (each, each.exemption) for each in exempt if each.exemption is not None}

    async def _tell(self, exempt: Mapping[str, tuple[Budget, Exemption]]) -> None:
        self.trouble = ""
        try:
            for uid, (budget, exemption) in exempt.items():
                if self._told.get(uid, (budget, None))[1] != exemption:
                    said = f"the quota limits nothing {exemption}"
                    self.trouble = await self._events.send(budget.reference, "Exempt", said)
                    self._told[uid] = budget, exemption
            for uid in self._told.keys() - exempt.keys():
                budget, _ = self._told[uid]
                said = "the quota limits pods again"
                self.trouble = await self._events.send(budget.reference, "ExemptionEnded", said, is_warning=False)
                del self._told[uid]
        except NoAnswerError as error:
            self.trouble = str(error)
