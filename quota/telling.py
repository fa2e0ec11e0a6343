"""All that tells people of quotas: statuses, and Events of what went wrong, was lifted or was mended."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kube.calls import ApiCalls
from kube.map_source import MapSource
from serving.jobs import Job
from serving.log import utc_now

from .events import QuotaEvents
from .exemptions import Exemptions
from .keeping import Keeping
from .map_reports import MapReports
from .repairs import Repairs
from .reporting import Reporting


class Telling:
    def __init__(
        self,
        calls: ApiCalls,
        keeping: Keeping,
        may_decide: Callable[[], bool],
        *,
        waits: Callable[[], Mapping[str, int]],
        map_source: MapSource,
        repairs: Repairs,
    ) -> None:
        events = QuotaEvents(calls, utc_now)
        self.exemptions = Exemptions(keeping, events, may_decide)
        reporting = Reporting(calls, lambda: keeping.keepers, waits, may_decide, utc_now)
        self._tellers = reporting, MapReports(map_source, events, may_decide), self.exemptions, repairs

    def jobs(self) -> list[Job]:
        return [each.run for each in self._tellers]

    def troubles(self) -> list[str]:
        return [each.trouble for each in self._tellers]
