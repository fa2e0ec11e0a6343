"""Which owners of pods are waiting for room."""

from __future__ import annotations

from typing import Any, Final

import pytest

from quota.gates.owner_retry import OWNERS

SETS: Final = "apis/apps/v1/{}/replicasets"
DAEMONS: Final = "apis/apps/v1/{}/daemonsets"
JOBS: Final = "apis/batch/v1/{}/jobs"
OVER: Final = [{"type": "Complete", "status": "True"}]

Case = tuple[str, dict[str, Any], dict[str, Any], bool]

CASES: Final[dict[str, Case]] = {
    "none of two": (SETS, {"replicas": 2}, {}, True),
    "one of two": (SETS, {"replicas": 2}, {"replicas": 1}, True),
    "both": (SETS, {"replicas": 2}, {"replicas": 2}, False),
    "one, the default": (SETS, {}, {"replicas": 0}, True),
    "scaled to none": (SETS, {"replicas": 0}, {}, False),
    "a node without its pod": (DAEMONS, {}, {"desiredNumberScheduled": 3, "currentNumberScheduled": 2}, True),
    "a pod on each node": (DAEMONS, {}, {"desiredNumberScheduled": 3, "currentNumberScheduled": 3}, False),
    "a job that has not begun": (JOBS, {}, {}, True),
    "a job that runs": (JOBS, {}, {"active": 1}, False),
    "a job with fewer than it may run": (JOBS, {"parallelism": 3, "completions": 9}, {"active": 1}, True),
    "the last of a job": (JOBS, {"parallelism": 3, "completions": 9}, {"active": 1, "succeeded": 8}, False),
    "a job that is over": (JOBS, {}, {"succeeded": 0, "conditions": OVER}, False),
    "a job that is held": (JOBS, {"suspend": True}, {}, False),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_owner_waits_while_it_has_fewer_pods_than_it_wants(case: Case) -> None:
    sort, spec, status, waits = case
    assert OWNERS[sort](spec, status) is waits
