"""Pods and workloads of an API server become what the checks of Halfcard's own processes read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from cli.diagnosis.own_objects import ContainerState, Taint, TaintToleration
from cli.diagnosis.process_observations import container_state, last_line, own_pod, workload

NOON: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_a_pod_without_a_ready_condition_is_unready_since_its_creation() -> None:
    made = {"metadata": {"name": "p", "creationTimestamp": "2026-11-21T12:00:00Z"}, "spec": {}}
    seen = own_pod(made)
    assert (seen.is_ready, seen.since, seen.started) == (False, NOON, NOON)


def test_a_pod_says_why_the_scheduler_finds_no_node() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    made = {
        "metadata": {"name": "p", "creationTimestamp": "2026-11-21T12:00:00Z"},
        "spec": {},
        "status": {"conditions": [condition]},
    }
    assert own_pod(made).unscheduled == "0/1 nodes are available"


RUNNING: Final = {"running": {"startedAt": "2026-11-21T12:00:00Z"}}
FAILED: Final = {"terminated": {"exitCode": 2, "reason": "Error"}}
STATES: Final[dict[str, tuple[dict[str, Any], ContainerState]]] = {
    "no status yet": ({}, ContainerState()),
    "it runs": ({"ready": True, "image": "i", "state": RUNNING}, ContainerState("i")),
    "its image is missing": (
        {"image": "i", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}},
        ContainerState("i", "ErrImagePull", "not found"),
    ),
    "it waits for its next start": (
        {"restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": FAILED},
        ContainerState(waits="CrashLoopBackOff", restarts=3, exit_code=2, ended="Error"),
    ),
    "it has started again": (
        {"restartCount": 3, "state": RUNNING, "lastState": FAILED},
        ContainerState(restarts=3, exit_code=2, ended="Error"),
    ),
    "it has just ended": ({"state": FAILED}, ContainerState(exit_code=2, ended="Error")),
}


@pytest.mark.parametrize(("status", "expected"), STATES.values(), ids=STATES.keys())
def test_a_container_shows_why_it_does_not_run(status: dict[str, Any], expected: ContainerState) -> None:
    assert container_state({"status": {"containerStatuses": [status] if status else []}}) == expected


def test_the_container_that_is_not_ready_is_the_one_that_is_shown() -> None:
    statuses = [{"image": "a", "ready": True}, {"image": "b", "ready": False}]
    assert container_state({"status": {"containerStatuses": statuses}}).image == "b"


def test_the_last_line_of_a_log_has_no_colours_and_is_not_blank() -> None:
    assert last_line("one\n\x1b[31mtwo\x1b[0m\n\n") == "two"
    assert last_line("") == ""


# --- workloads -------------------------------------------------------------------------------------------------------

TEMPLATE: Final[dict[str, Any]] = {
    "serviceAccountName": "halfcard-agent",
    "containers": [{"image": "a"}, {"image": "b"}],
    "volumes": [{"name": "v", "configMap": {"name": "m"}}, {"name": "w", "hostPath": {"path": "/"}}],
    "nodeSelector": {"l": "true"},
    "tolerations": [{"key": "t", "operator": "Exists"}],
}


def item(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"namespace": "s", "name": "n", "generation": 2}
    return {"metadata": metadata, "spec": {"template": {"spec": TEMPLATE}, **spec}, "status": status or {}}


def test_a_workload_is_checked_by_its_template() -> None:
    seen = workload("DaemonSet", item())
    assert seen[:6] == ("DaemonSet", "s", "n", "halfcard-agent", ("a", "b"), ("m",))
    assert (seen.selector, seen.tolerations) == ((("l", "true"),), (TaintToleration("t", "Exists"),))


EVENT: Final = {"involvedObject": {"kind": "DaemonSet", "name": "n"}, "message": "exceeded quota: q"}
LACKING: Final[dict[str, tuple[str, dict[str, Any], tuple[int, str]]]] = {
    "a DaemonSet whose pods are refused": (
        "DaemonSet",
        item({"observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": 1}),
        (2, "exceeded quota: q"),
    ),
    "a Deployment whose pods are refused": (
        "Deployment",
        item(
            {"observedGeneration": 2, "conditions": [{"type": "ReplicaFailure", "status": "True", "message": "no"}]},
            replicas=2,
        ),
        (2, "no"),
    ),
    "one that its controller has not seen yet": ("Deployment", item({"observedGeneration": 1}, replicas=2), (0, "")),
    "one that is complete": ("Deployment", item({"observedGeneration": 2, "replicas": 2}, replicas=2), (0, "")),
    "one with a pod more, during an update": (
        "Deployment",
        item({"observedGeneration": 2, "replicas": 3}, replicas=2),
        (0, ""),
    ),
}


@pytest.mark.parametrize(("kind", "found", "expected"), LACKING.values(), ids=LACKING.keys())
def test_a_workload_shows_how_many_pods_it_lacks_and_why(
    kind: str, found: dict[str, Any], expected: tuple[int, str]
) -> None:
    seen = workload(kind, found, [EVENT])
    assert (seen.lacks, seen.refusal) == expected


TAINT: Final = Taint("gpu", "a100", "NoSchedule")
TOLERATED: Final[dict[str, tuple[TaintToleration, bool]]] = {
    "all": (TaintToleration(operator="Exists"), True),
    "its key": (TaintToleration("gpu", "Exists"), True),
    "its key and value": (TaintToleration("gpu", "Equal", "a100"), True),
    "another value": (TaintToleration("gpu", "Equal", "t4"), False),
    "another effect": (TaintToleration("gpu", "Exists", effect="NoExecute"), False),
    "another key": (TaintToleration("cpu", "Exists"), False),
}


@pytest.mark.parametrize(("toleration", "expected"), TOLERATED.values(), ids=TOLERATED.keys())
def test_a_taint_is_tolerated_as_kubernetes_says(toleration: TaintToleration, *, expected: bool) -> None:
    assert toleration.tolerates(TAINT) is expected
