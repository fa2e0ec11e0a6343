"""The loop of all reports."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable

from kube.api.calls import NoAnswerError


class ReportJob(ABC):
    """Reports at intervals while this replica leads.

    Attributes:
        trouble: the last failure, in one sentence.
    """

    def __init__(self, may_decide: Callable[[], bool], every_s: float) -> None:
        self.trouble = ""
        self._may_decide = may_decide
        self._every_s = every_s

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            if self._may_decide():
                try:
                    await self.report()
                except NoAnswerError as error:
                    self.trouble = str(error)

    @abstractmethod
    async def report(self) -> None:
        """Reports what is due now. Sets `trouble`, or raises NoAnswerError."""
