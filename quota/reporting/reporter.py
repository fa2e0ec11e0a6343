"""Reports about quotas: statuses, and Events about failures, exemptions and repairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kube.api.calls import ApiCalls
from kube.quota.tke_map_source import TkeMapSource
from serving.background_jobs import Job

from ..ledgers_controller import LedgersController
from .exemption_reports import ExemptionReports
from .quota_events import QuotaEvents
from .repair_reports import RepairReports
from .report_job import ReportJob
from .status_writer import StatusWriter
from .tke_map_reports import TkeMapReports


class Reporter:
    def __init__(
        self,
        calls: ApiCalls,
        ledgers: LedgersController,
        may_decide: Callable[[], bool],
        *,
        waits: Callable[[], Mapping[str, int]],
        map_source: TkeMapSource,
        repairs: RepairReports,
    ) -> None:
        events = QuotaEvents(calls)
        self.exemptions = ExemptionReports(ledgers, events, may_decide)
        self._reports: Mapping[str, ReportJob] = {
            "write statuses": StatusWriter(calls, ledgers, waits, may_decide),
            "report on the quota ConfigMap": TkeMapReports(map_source, events, may_decide),
            "end exemptions": self.exemptions,
            "report repairs": repairs,
        }

    def jobs(self) -> list[Job]:
        return [(name, each.run) for name, each in self._reports.items()]

    def troubles(self) -> list[str]:
        return [each.trouble for each in self._reports.values()]
