"""Reports ResourceQuotas that Kubernetes accepted and never counts, in Events at the quotas.

With a setting they are repaired, once, when this replica begins to lead. A repair without being asked would start to
refuse pods on the day when Halfcard is installed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from halfcard.dialects import Dialects
from halfcard.quota.native_messages import never_counted
from kube.api.calls import ApiCalls
from kube.quota.native_quota_repair import repair
from kube.quota.native_quota_source import NativeQuotas
from serving.log import Log

from ..reporting.quota_events import QuotaEvents
from ..reporting.report_job import ReportJob

_EVERY_S: Final = 5.0
_AGAIN_S: Final = 30 * 60.0
"""The API server forgets an Event after an hour."""


class UntrackedReports(ReportJob):
    """Created on the event loop. `at_start` runs once, when this replica begins to lead for the first time."""

    def __init__(
        self,
        known: NativeQuotas,
        events: QuotaEvents,
        may_decide: Callable[[], bool],
        at_start: Callable[[], Awaitable[None]] | None,
    ) -> None:
        super().__init__(may_decide, _EVERY_S)
        self._known = known
        self._events = events
        self._at_start = at_start
        self._reported: dict[str, float] = {}

    async def run(self) -> None:
        await self._known.informer.wait_until_ready()
        await super().run()

    async def report(self) -> None:
        self.trouble = ""
        if self._at_start is not None:
            await self._at_start()
            self._at_start = None
        now, found = asyncio.get_running_loop().time(), self._known.uncounted()
        uids = {each.meta.uid for each in found}
        self._reported = {uid: at for uid, at in self._reported.items() if uid in uids and now - at < _AGAIN_S}
        for each in [each for each in found if each.meta.uid not in self._reported]:
            said = never_counted(each, self._known.resources)
            self.trouble = await self._events.send(each.reference, "NeverCounted", said) or self.trouble
            self._reported[each.meta.uid] = now


async def repair_all(calls: ApiCalls, known: NativeQuotas, dialects: Dialects, events: QuotaEvents, log: Log) -> None:
    """Repairs all quotas that count nothing; those that cannot be repaired are reported."""
    for each in known.uncounted():
        found = await repair(calls, each, dialects)
        if found.why_not:
            log.warning("quota not repaired", quota=found.title, why=found.why_not)
        else:
            log.event("quota repaired", quota=found.title, done=found.done)
            await events.send(each.reference, "MadeToCount", "; ".join(found.done), is_warning=False)
