from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

import halfcard
from admission.metrics import WebhookMetrics
from admission.verdict import Verdict
from halfcard.problems import CORES, QUANTITY


def exposed() -> tuple[WebhookMetrics, CollectorRegistry]:
    registry = CollectorRegistry()
    return WebhookMetrics(registry), registry


def test_a_refusal_counts_under_the_code_of_its_first_problem() -> None:
    metrics, registry = exposed()
    metrics.decided("/w", Verdict((CORES.broken("a", "b", "c"), QUANTITY.broken("a", "b", "c"))), 0.001)
    labels = {"webhook": "/w", "verdict": "denied", "code": "HC002"}
    assert registry.get_sample_value("halfcard_admission_decisions_total", labels) == 1


def test_a_decision_is_counted_in_the_bucket_of_its_time() -> None:
    metrics, registry = exposed()
    metrics.decided("/w", Verdict(), 0.0007)
    name = "halfcard_admission_decision_seconds_bucket"
    assert registry.get_sample_value(name, {"webhook": "/w", "le": "0.0005"}) == 0
    assert registry.get_sample_value(name, {"webhook": "/w", "le": "0.001"}) == 1


def test_the_running_version_is_a_metric() -> None:
    _, registry = exposed()
    labels = {"version": halfcard.__version__}
    assert registry.get_sample_value("halfcard_build_info", labels) == 1


def test_errors_count_by_status() -> None:
    metrics, registry = exposed()
    metrics.failed(413)
    assert registry.get_sample_value("halfcard_admission_http_errors_total", {"status": "413"}) == 1
    assert b"halfcard_admission_in_flight" in generate_latest(registry)
