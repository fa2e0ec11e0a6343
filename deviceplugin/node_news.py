"""Whether a node object says something new: kubelet writes it every ten seconds to show that it lives. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_OURS: Final = ("labels", "annotations")
_STATUS: Final = ("capacity", "allocatable", "nodeInfo")
_BEAT: Final = "lastHeartbeatTime"


def news(node: Mapping[str, Any] | None) -> object:
    """Equal for two objects that differ by a sign of life alone; None where there is no node."""
    if node is None:
        return None
    metadata, status = node["metadata"], node.get("status") or {}
    conditions = [
        {key: value for key, value in each.items() if key != _BEAT} for each in status.get("conditions") or ()
    ]
    return [metadata.get(key) for key in _OURS], [status.get(key) for key in _STATUS], conditions
