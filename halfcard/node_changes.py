"""Tells changes of a node object from heartbeats, by which kubelet only shows that the node is alive, and whether it
answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_METADATA: Final = ("labels", "annotations")
_STATUS: Final = ("capacity", "allocatable", "nodeInfo", "addresses")
_BEAT: Final = "lastHeartbeatTime"
_READY: Final = "Ready"


def without_heartbeat(node: Mapping[str, Any] | None) -> object:
    """Returns the object without heartbeats, for comparison; None where there is no node."""
    if node is None:
        return None
    metadata, status = _mapping(node.get("metadata")), _mapping(node.get("status"))
    conditions = status.get("conditions")
    calm = [_without_beat(each) for each in conditions] if isinstance(conditions, list) else conditions
    return [metadata.get(key) for key in _METADATA], [status.get(key) for key in _STATUS], calm


def answers(node: Mapping[str, Any]) -> bool:
    """Returns whether the node is Ready; False also where its kubelet never said so, or is silent."""
    conditions = _mapping(node.get("status")).get("conditions")
    found = [_mapping(each) for each in conditions] if isinstance(conditions, list) else []
    return any(each.get("type") == _READY and each.get("status") == "True" for each in found)


def _without_beat(condition: object) -> object:
    return {key: value for key, value in _mapping(condition).items() if key != _BEAT}


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
