from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from halfcard.pod.reported_pod import ReportedPod

NOW: Final = datetime(2026, 11, 25, 12, 1, tzinfo=UTC)
NEW: Final = {"creationTimestamp": "2026-11-25T12:00:00Z"}
SAID: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}

PODS: Final[Mapping[str, tuple[Mapping[str, Any], bool]]] = {
    "of a minute ago": ({"metadata": NEW}, True),
    "of less than a minute ago": ({"metadata": {"creationTimestamp": "2026-11-25T12:00:01Z"}}, False),
    "that is not stored": ({"metadata": {}}, False),
    "with a node": ({"metadata": NEW, "spec": {"nodeName": "n"}}, False),
    "with a scheduling gate": ({"metadata": NEW, "spec": {"schedulingGates": [{"name": "g"}]}}, False),
    "that a scheduler refused": ({"metadata": NEW, "status": {"conditions": [SAID]}}, False),
    "that failed": ({"metadata": NEW, "status": {"phase": "Failed"}}, False),
    "that is deleted": ({"metadata": {**NEW, "deletionTimestamp": "2026-11-25T12:00:30Z"}}, False),
}


@pytest.mark.parametrize(("pod", "expected"), PODS.values(), ids=PODS.keys())
def test_a_pod_waits_untried_if_its_scheduler_should_have_said_something(
    pod: Mapping[str, Any], *, expected: bool
) -> None:
    assert msgspec.convert(pod, ReportedPod).waits_untried(NOW) is expected
