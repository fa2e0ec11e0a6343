"""Metrics of the extender. Labels have few values: never a pod's name, never a namespace."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

import halfcard

Figure = Callable[[], float]

_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class ExtenderMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        answers = Counter(
            "halfcard_extender_answers",
            "Calls of kube-scheduler, by verb and outcome: ok, declined (for this pod), malformed, bug.",
            ["verb", "outcome"],
            registry=registry,
        )
        seconds = Histogram(
            "halfcard_extender_answer_seconds",
            "Time from the first line of a call until its answer.",
            ["verb"],
            buckets=_BUCKETS,
            registry=registry,
        )
        failed = Counter(
            "halfcard_extender_failed_handshakes",
            "TLS handshakes on the scheduler's port that failed, by reason.",
            ["reason"],
            registry=registry,
        )
        self._registry = registry
        self._failed_of = failed.labels
        self._answers_of, self._seconds_of = cache(answers.labels), cache(seconds.labels)
        build = Gauge("halfcard_build_info", "Version of this process; always 1.", ["version"], registry=registry)
        build.labels(halfcard.__version__).set(1)

    def answered(self, verb: str, outcome: str, seconds: float) -> None:
        self._answers_of(verb, outcome).inc()
        self._seconds_of(verb).observe(seconds)

    def handshake_failed(self, reason: str) -> None:
        self._failed_of(reason).inc()

    def watch_callers(self, days_left: Figure) -> None:
        self._gauge(
            "caller_certificate_days_left",
            "Days until the first of the client certificates expires that schedulers have shown; NaN before one.",
            days_left,
        )

    def watch(self, *, leading: Figure, nodes: Figure, inconsistencies: Figure) -> None:
        """Adds gauges that are read at each scrape."""
        self._gauge("leading", "1 on the leader, which alone binds pods.", leading)
        self._gauge("nodes", "Nodes with a consistent state.", nodes)
        self._gauge(
            "doubts", "Nodes and pods with an inconsistent state; `halfcard inspect` names them.", inconsistencies
        )

    def _gauge(self, name: str, help_text: str, figure: Figure) -> None:
        Gauge(f"halfcard_extender_{name}", help_text, registry=self._registry).set_function(figure)
