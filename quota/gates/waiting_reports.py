"""Reports to each pod that waits for room what it waits for, and behind which pods: one Event, which is kept current.

The API server deletes an Event an hour after its last change, so the Event of a pod that still waits is repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ..reporting.quota_events import QuotaEvents
from ..reporting.report_job import ReportJob

_EVERY_S: Final = 0.5
_AT_ONCE: Final = 50
"""500 pods that begin to wait at the same time have their Events within seconds, and other calls are still served."""

_REPEAT_S: Final = 1800.0
_RETRY_S: Final = 30.0
"""After a refusal: the Events of other pods are not delayed by it."""

_REASON: Final = "WaitsForQuota"


class WaitingReason(NamedTuple):
    """What one pod waits for, as a sentence."""

    namespace: str
    pod: str
    message: str


class _Reported(NamedTuple):
    """What was reported; it is repeated at `due`."""

    reason: WaitingReason
    due: float


class WaitingReports(ReportJob):
    def __init__(self, events: QuotaEvents, may_decide: Callable[[], bool], now: Callable[[], float]) -> None:
        super().__init__(may_decide, _EVERY_S)
        self._events = events
        self._now = now
        self._reasons: Mapping[str, WaitingReason] = {}
        self._reported: dict[str, _Reported] = {}

    def update(self, reasons: Mapping[str, WaitingReason]) -> None:
        """Takes the reasons of all waiting pods, by uid, the first in the queue first."""
        self._reasons = reasons

    async def report(self) -> None:
        self.trouble = ""
        self._reported = {uid: each for uid, each in self._reported.items() if uid in self._reasons}
        due = [uid for uid in self._reasons if self._is_due(uid)][:_AT_ONCE]
        await asyncio.gather(*[self._report(uid, self._reasons[uid]) for uid in due])

    def _is_due(self, uid: str) -> bool:
        last = self._reported.get(uid)
        return last is None or last.reason != self._reasons[uid] or self._now() >= last.due

    async def _report(self, uid: str, reason: WaitingReason) -> None:
        about = {"apiVersion": "v1", "kind": "Pod", "namespace": reason.namespace, "name": reason.pod, "uid": uid}
        trouble = await self._events.send(about, _REASON, reason.message, is_warning=False)
        self.trouble = trouble or self.trouble
        self._reported[uid] = _Reported(reason, self._now() + (_RETRY_S if trouble else _REPEAT_S))
