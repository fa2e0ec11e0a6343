"""Metrics of the webhook. Labels have few values: never a pod's name, and a limited number of namespaces and quotas."""

from __future__ import annotations

from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

import halfcard

from .verdict import Verdict

_BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5)
"""Seconds: a decision takes a tenth of a millisecond, and the API server waits for seconds."""


_MOST_QUOTAS: Final = 500
_OTHERS: Final = "others"


class _ByQuota:
    """Counts refusals by quota; users can create many quotas, so those beyond a limit share one label."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refusals = Counter(
            "halfcard_quota_refusals",
            f"Pods refused by a quota, also native ones; after {_MOST_QUOTAS} quotas all others are `{_OTHERS}`.",
            ["namespace", "quota"],
            registry=registry,
        )
        self._known: set[tuple[str, str]] = set()

    def count(self, namespace: str, quota: str) -> None:
        which = (namespace, quota)
        if which not in self._known and len(self._known) >= _MOST_QUOTAS:
            which = (_OTHERS, _OTHERS)
        self._known.add(which)
        self._refusals.labels(*which).inc()


class WebhookMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        # The creation time of each series doubles what is scraped, and has no reader.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        decisions = Counter(
            "halfcard_admission_decisions",
            "Decisions, by webhook, verdict and code (of the first problem, `quota`, `busy`, or empty).",
            ["webhook", "verdict", "code"],
            registry=registry,
        )
        self._warnings = Counter(
            "halfcard_admission_warnings",
            "Objects that break a rule whose severity is `warn`, by webhook and code.",
            ["webhook", "code"],
            registry=registry,
        )
        seconds = Histogram(
            "halfcard_admission_decision_seconds",
            "Time from the last byte of a review until its answer.",
            ["webhook"],
            buckets=_BUCKETS,
            registry=registry,
        )
        # Looking up a label costs more than counting it.
        self._decisions_of, self._seconds_of = cache(decisions.labels), cache(seconds.labels)
        self._errors = Counter(
            "halfcard_admission_http_errors",
            "Requests answered with an HTTP error: 4xx is an error of the caller, 500 a bug of the webhook.",
            ["status"],
            registry=registry,
        )
        self.refused = _ByQuota(registry).count
        self.in_flight = 0
        Gauge(
            "halfcard_admission_in_flight", "Reviews that are being read or decided.", registry=registry
        ).set_function(lambda: self.in_flight)
        build = Gauge("halfcard_build_info", "Version of this process; always 1.", ["version"], registry=registry)
        build.labels(halfcard.__version__).set(1)

    def decided(self, webhook: str, verdict: Verdict, seconds: float) -> None:
        if not verdict.allowed:
            self._decisions_of(webhook, "denied", verdict.codes[0]).inc()
        else:
            self._decisions_of(webhook, "patched" if verdict.changes else "allowed", "").inc()
        for code in verdict.warned:
            self._warnings.labels(webhook, code).inc()
        self._seconds_of(webhook).observe(seconds)

    def failed(self, status: int) -> None:
        self._errors.labels(str(status)).inc()
