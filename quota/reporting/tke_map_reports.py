"""Reports mistakes in the ConfigMap of TKE's quota admission, in Events at the ConfigMap."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from halfcard import names
from kube.api.calls import NoAnswerError
from kube.quota.tke_map_source import TkeMapSource

from .quota_events import QuotaEvents

_EVERY_S: Final = 2.0
_REASON: Final = "LimitsNothing"


class TkeMapReports:
    """Attributes:
    trouble: the last failure, in one sentence.
    """

    def __init__(self, source: TkeMapSource, events: QuotaEvents, may_decide: Callable[[], bool]) -> None:
        self.trouble = ""
        self._source = source
        self._events = events
        self._may_decide = may_decide
        self._reported: tuple[str, ...] = ()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            if self._may_decide() and self._source.problems != self._reported:
                await self._report(self._source.problems)

    async def _report(self, problems: tuple[str, ...]) -> None:
        """Reports all problems in one Event, each time that they change."""
        self.trouble = ""
        about = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": names.KUBE_SYSTEM, "name": names.GPU_QUOTA_MAP}
        try:
            if problems:
                reference = {**about, "uid": self._source.uid}
                self.trouble = await self._events.send(reference, _REASON, "; ".join(problems))
        except NoAnswerError as error:
            self.trouble = str(error)
        else:
            self._reported = problems
