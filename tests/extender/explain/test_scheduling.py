"""What is said about the scheduler of a pending pod: obstacles first, then its own words, then what follows."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from extender.explain.scheduling import (
    NO_TRACES,
    SchedulerReport,
    SchedulerTraces,
    Scheduling,
    explain_scheduling,
    reported,
)
from halfcard import names
from halfcard.pod.reported_pod import ReportedPod
from tests.builders import PodBuilder, pod

SERVED: Final = (names.DEFAULT_SCHEDULER,)
CREATED: Final = "2026-11-24T10:00:00Z"
TRAIN: Final = pod("train").asks(core=30, memory=20).created(creationTimestamp=CREATED)


def pending(built: PodBuilder = TRAIN, **condition: Any) -> ReportedPod:
    status = {"conditions": [{"type": "PodScheduled", "status": "False", **condition}]} if condition else {}
    return msgspec.json.decode(msgspec.json.encode({**built.manifest, "status": status}), type=ReportedPod)


def explained(asking: ReportedPod, traces: SchedulerTraces = NO_TRACES) -> Scheduling:
    return explain_scheduling(asking, SERVED, reported(asking), traces)


def test_the_schedulers_own_words_are_kept_as_they_are() -> None:
    message = "0/1 nodes are available."
    found = explained(pending(reason="Unschedulable", message=message, lastTransitionTime=CREATED))
    assert found == Scheduling("default-scheduler", report=SchedulerReport("Unschedulable", message, CREATED))
    assert found.holds_back and found.program == "kube-scheduler"


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_a_condition_that_is_not_false_says_nothing(status: str) -> None:
    assert reported(pending(reason="Unschedulable", message="m", status=status)) is None


@pytest.mark.parametrize(
    ("gate", "sentence"),
    [
        ("example.com/review", "No scheduler tries it until its scheduling gate example.com/review is removed"),
        (names.QUOTA_GATE, "It waits for its quotas, with the scheduling gate halfcard.dev/quota: halfcard quota"),
    ],
)
def test_a_gate_comes_instead_of_the_api_servers_words_about_it(gate: str, sentence: str) -> None:
    found = explained(pending(TRAIN.gated(gate), reason="SchedulingGated", message="Scheduling is blocked"))
    assert found.report is None and found.holds_back
    assert [each[: len(sentence)] for each in found.obstacles] == [sentence]


def test_a_scheduler_that_halfcard_does_not_serve_is_named_with_those_that_it_serves() -> None:
    asking = pending(TRAIN.specified(schedulerName="volcano"), reason="Unschedulable", message="m")
    (obstacle,) = explained(asking).obstacles
    words = 'Halfcard does not serve its scheduler: got "volcano", and the setting schedulers has default-scheduler.'
    assert obstacle == words
    assert explained(asking).program == "scheduler volcano"
    assert explain_scheduling(asking, (), None, NO_TRACES).obstacles == ()  # a pod without claims


def test_a_failed_call_to_the_extender_is_followed_by_its_fix() -> None:
    message = f'Post "https://10.96.34.56:443{names.FILTER_PATH}": x509: unknown authority'
    remark = explained(pending(reason="SchedulerError", message=message)).remark
    assert remark.startswith("kube-scheduler's call to Halfcard's extender failed: caFile is of another CA")


def test_an_error_of_another_call_gets_no_advice() -> None:
    message = 'Post "https://example.com/volumes": EOF'
    assert explained(pending(reason="SchedulerError", message=message)).remark == ""


UNTRIED: Final[dict[str, tuple[str, SchedulerTraces, bool, str]]] = {
    "nothing was looked for": ("volcano", NO_TRACES, False, ""),
    "it works": (
        names.DEFAULT_SCHEDULER,
        SchedulerTraces(3, has_events=True, lease_renewed="2026-11-24T10:00:01.5Z"),
        False,
        "3 other pods of it on nodes, it has written events, its Lease was renewed at 2026-11-24T10:00:01.5Z.",
    ),
    "its Lease is older than the pod": (
        names.DEFAULT_SCHEDULER,
        SchedulerTraces(3, has_events=True, lease_renewed="2026-11-24T09:59:59.5Z"),
        True,
        "its Lease was renewed at 2026-11-24T09:59:59.5Z. Does it run?",
    ),
    "it has no Lease, as without leader election": (
        names.DEFAULT_SCHEDULER,
        SchedulerTraces(1, has_events=True, lease_renewed=""),
        False,
        "1 other pod of it on nodes, it has written events, no Lease.",
    ),
    "nothing shows it": (
        "volcano",
        SchedulerTraces(0, has_events=False),
        True,
        'What is known of "volcano": no other pods of it on nodes, no events. Does it run?',
    ),
    "its events cannot be read": (
        "volcano",
        SchedulerTraces(1, has_events=None),
        False,
        "1 other pod of it on nodes, events unknown.",
    ),
}


@pytest.mark.parametrize(("scheduler", "traces", "holds", "words"), UNTRIED.values(), ids=UNTRIED.keys())
def test_a_pod_that_no_scheduler_tried_says_what_is_known_of_its_scheduler(
    scheduler: str, traces: SchedulerTraces, *, holds: bool, words: str
) -> None:
    asking = pending(TRAIN.specified(schedulerName=scheduler))
    found = explain_scheduling(asking, (), None, traces)
    assert found.holds_back is holds
    said = " ".join((*found.obstacles, found.remark)).strip()
    assert said.endswith(words)
    assert not words or said.startswith(f"No scheduler has tried it since {CREATED}. ")
