"""Checks Kubernetes' own ResourceQuotas and reports what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from prometheus_client import CollectorRegistry

from halfcard.dialects import Dialects
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.api.informer import follow_jobs
from kube.quota.native_quota_source import NativeQuotas
from serving.background_jobs import Job
from serving.log import Log

from ..metrics import watch_native
from ..reporting.quota_events import QuotaEvents
from .drift_check import DriftCheck
from .untracked_reports import UntrackedReports, repair_all


class NativeQuotaChecks:
    """Made on the event loop; `jobs` run as long as it does."""

    def __init__(
        self,
        access: Access,
        calls: ApiCalls,
        dialects: Dialects,
        may_decide: Callable[[], bool],
        log: Log,
        *,
        repairs_at_start: bool,
        added: frozenset[str] = frozenset(),
    ) -> None:
        self._may_decide = may_decide
        self._known = NativeQuotas(access, dialects.resources, added)
        events = QuotaEvents(calls)
        at_start = partial(repair_all, calls, self._known, dialects, events, log) if repairs_at_start else None
        self._reports = UntrackedReports(self._known, events, may_decide, at_start)
        self._drift = DriftCheck(calls, self._known, may_decide)

    def jobs(self) -> Sequence[Job]:
        return (
            *follow_jobs([self._known.informer]),
            ("report untracked resources", self._reports.run),
            ("check native quotas for drift", self._drift.run),
        )

    def problems(self) -> tuple[str, ...]:
        return tuple(filter(None, (self._known.informer.trouble, self._reports.trouble, self._drift.trouble)))

    def watch(self, registry: CollectorRegistry) -> None:
        watch_native(registry, uncounted=self._uncounted, drifted=lambda: len(self._drift.found))

    def _uncounted(self) -> float:
        return len(self._known.uncounted()) if self._may_decide() else 0
