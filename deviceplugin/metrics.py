"""Metrics of the agent's own work. Labels have few values: never a pod's name, never a namespace."""

from __future__ import annotations

from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

import halfcard

_BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""Allocate takes a tenth of a millisecond, PreStartContainer asks kubelet and the API server."""

_OUT_OF: Final = "OutOf"
_REASONS: Final = frozenset(
    {"UnexpectedAdmissionError", "TopologyAffinityError", "NodeAffinity", "NodeShutdown", "Evicted", "Preempting"}
)
"""Kubelet's reasons in the status of a pod that it rejects; `OutOf` is followed by the name of a resource."""


class AgentMetrics:
    def __init__(self, registry: CollectorRegistry, *, is_made_up: bool) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        answers = Counter(
            "halfcard_agent_answers",
            "Calls of kubelet, by call (allocate, prestart) and outcome: ok, refused (with a reason), bug.",
            ["call", "outcome"],
            registry=registry,
        )
        seconds = Histogram(
            "halfcard_agent_answer_seconds",
            "Time that kubelet waits for an answer.",
            ["call"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._answers_of, self._seconds_of = cache(answers.labels), cache(seconds.labels)
        self._failed = Counter(
            "halfcard_agent_failed_admissions",
            "GPU pods that kubelet failed on this node, by its reason.",
            ["reason"],
            registry=registry,
        )
        self._registrations = Counter(
            "halfcard_agent_registrations", "Registrations of a resource with kubelet.", ["resource"], registry=registry
        )
        made_up = Gauge(
            "halfcard_agent_made_up", "1 where the node's cards are simulated (--fake-gpus).", registry=registry
        )
        made_up.set(is_made_up)
        build = Gauge("halfcard_build_info", "Version of this process; always 1.", ["version"], registry=registry)
        build.labels(halfcard.__version__).set(1)

    def count_call(self, call: str, outcome: str, seconds: float) -> None:
        self._answers_of(call, outcome).inc()
        self._seconds_of(call).observe(seconds)

    def count_rejected_pod(self, reason: str) -> None:
        """Counts a rejected pod by the reason of its status."""
        self._failed.labels(_bounded(reason)).inc()

    def count_registration(self, resource: str) -> None:
        self._registrations.labels(resource).inc()


def _bounded(reason: str) -> str:
    if reason.startswith(_OUT_OF):
        return _OUT_OF
    return reason if reason in _REASONS else "other"
