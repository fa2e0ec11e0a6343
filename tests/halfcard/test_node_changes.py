"""Heartbeats of a node are no changes; everything that users may change is one."""

from __future__ import annotations

from typing import Any

import pytest

from halfcard.node_changes import without_heartbeat


def node(**status: Any) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    return {
        "metadata": {"name": "n", "resourceVersion": "1", "labels": {"a": "1"}},
        "status": {"capacity": {"cpu": "2"}, "conditions": [condition], "images": [], **status},
    }


def test_a_heartbeat_is_not_a_change() -> None:
    beat = node(conditions=[{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:10Z"}])
    beat["metadata"]["resourceVersion"] = "2"
    assert without_heartbeat(beat) == without_heartbeat(node())


@pytest.mark.parametrize(
    "status",
    [
        {"capacity": {"cpu": "4"}},
        {"allocatable": {"cpu": "1"}},
        {"nodeInfo": {"containerRuntimeVersion": "containerd://2.0"}},
        {"conditions": [{"type": "Ready", "status": "False"}]},
        {"conditions": None},
    ],
)
def test_other_status_fields_are_changes(status: dict[str, Any]) -> None:
    assert without_heartbeat(node(**status)) != without_heartbeat(node())


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_changes_by_users_are_changes(field: str) -> None:
    changed = node()
    changed["metadata"][field] = {"a": "2"}
    assert without_heartbeat(changed) != without_heartbeat(node())


def test_an_added_or_deleted_node_is_a_change() -> None:
    assert without_heartbeat(None) != without_heartbeat(node()) and without_heartbeat(None) == without_heartbeat(None)
