"""Reports mistakes in the ConfigMap of TKE's quota admission, in Events at the ConfigMap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from halfcard import names
from kube.quota.tke_map_source import TkeMapSource

from .quota_events import QuotaEvents
from .report_job import ReportJob

_EVERY_S: Final = 2.0
_REASON: Final = "LimitsNothing"


class TkeMapReports(ReportJob):
    def __init__(self, source: TkeMapSource, events: QuotaEvents, may_decide: Callable[[], bool]) -> None:
        super().__init__(may_decide, _EVERY_S)
        self._source = source
        self._events = events
        self._reported: tuple[str, ...] = ()

    async def report(self) -> None:
        """Reports all problems in one Event, each time that they change."""
        problems = self._source.problems
        if problems == self._reported:
            return
        self.trouble = ""
        if problems:
            about = {"apiVersion": "v1", "kind": "ConfigMap", "uid": self._source.uid}
            reference = {**about, "namespace": names.KUBE_SYSTEM, "name": names.GPU_QUOTA_MAP}
            self.trouble = await self._events.send(reference, _REASON, "; ".join(problems))
        self._reported = problems
