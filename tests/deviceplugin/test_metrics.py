from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

import halfcard
from deviceplugin.metrics import AgentMetrics


def exposed(*, is_made_up: bool = False) -> tuple[AgentMetrics, CollectorRegistry]:
    registry = CollectorRegistry()
    return AgentMetrics(registry, is_made_up=is_made_up), registry


def test_calls_of_kubelet_count_by_outcome_and_duration() -> None:
    metrics, registry = exposed()
    metrics.count_call("prestart", "refused", 0.004)
    metrics.count_call("allocate", "ok", 0.0002)
    refused = {"call": "prestart", "outcome": "refused"}
    assert registry.get_sample_value("halfcard_agent_answers_total", refused) == 1
    bucket = "halfcard_agent_answer_seconds_bucket"
    assert registry.get_sample_value(bucket, {"call": "prestart", "le": "0.0025"}) == 0
    assert registry.get_sample_value(bucket, {"call": "prestart", "le": "0.005"}) == 1
    assert registry.get_sample_value(bucket, {"call": "allocate", "le": "0.00025"}) == 1


@pytest.mark.parametrize(
    ("reason", "counted"),
    [
        ("UnexpectedAdmissionError", "UnexpectedAdmissionError"),
        ("OutOftencent.com/vcuda-core", "OutOf"),
        ("OutOfcpu", "OutOf"),
        ("whatever somebody wrote", "other"),
        ("", "other"),
    ],
)
def test_failed_admissions_count_by_few_reasons(reason: str, counted: str) -> None:
    metrics, registry = exposed()
    metrics.count_rejected_pod(reason)
    assert registry.get_sample_value("halfcard_agent_failed_admissions_total", {"reason": counted}) == 1


def test_registrations_count_by_resource() -> None:
    metrics, registry = exposed()
    metrics.count_registration("tuya.com/sgpu")
    metrics.count_registration("tuya.com/sgpu")
    labels = {"resource": "tuya.com/sgpu"}
    assert registry.get_sample_value("halfcard_agent_registrations_total", labels) == 2


@pytest.mark.parametrize("is_made_up", [True, False])
def test_simulated_cards_are_reported(*, is_made_up: bool) -> None:
    _, registry = exposed(is_made_up=is_made_up)
    assert registry.get_sample_value("halfcard_agent_made_up") == is_made_up


def test_the_running_version_is_reported() -> None:
    _, registry = exposed()
    assert registry.get_sample_value("halfcard_build_info", {"version": halfcard.__version__}) == 1
