"""Reports about quotas: statuses, and Events about failures, exemptions and repairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kube.api.calls import ApiCalls
from kube.quota.tke_map_source import TkeMapSource
from serving.background_jobs import Job
from serving.log import utc_now

from ..exemptions import Exemptions
from ..ledgers_controller import LedgersController
from .quota_events import QuotaEvents
from .repair_reports import RepairReports
from .status_writer import StatusWriter
from .tke_map_reports import TkeMapReports


class Reporter:
    def __init__(
        self,
        calls: ApiCalls,
        keeping: LedgersController,
        may_decide: Callable[[], bool],
        *,
        waits: Callable[[], Mapping[str, int]],
        map_source: TkeMapSource,
        repairs: RepairReports,
    ) -> None:
        events = QuotaEvents(calls, utc_now)
        self.exemptions = Exemptions(keeping, events, may_decide)
        reporting = StatusWriter(calls, lambda: keeping.keepers, waits, may_decide, utc_now)
        self._tellers = reporting, TkeMapReports(map_source, events, may_decide), self.exemptions, repairs

    def jobs(self) -> list[Job]:
        return [each.run for each in self._tellers]

    def troubles(self) -> list[str]:
        return [each.trouble for each in self._tellers]
