"""Usage as JSON: our own format, and under `usage` gpu-manager's."""

from __future__ import annotations

from typing import Any

import msgspec

from .usage_report import ContainerUsage, NodeUsageReport, PartUsage


def usage_json(usage: NodeUsageReport) -> bytes:
    own: dict[str, Any] = msgspec.to_builtins(usage)
    return msgspec.json.encode({**own, "usage": _as_gpu_manager(usage)})


def read_usage(body: bytes) -> NodeUsageReport:
    """Reads our own format. Raises msgspec.MsgspecError."""
    return msgspec.json.decode(body, type=NodeUsageReport)


def _as_gpu_manager(usage: NodeUsageReport) -> dict[str, Any]:
    """Returns usage by uid. gpu-manager's `id` is a card's PCI address; ours is the uuid, which is more useful."""
    pods: dict[str, Any] = {}
    for each in usage.containers:
        pod = pods.setdefault(each.uid, {"stat": {}, "project": each.namespace, "spec": {}})
        pod["stat"][each.container] = {"dev": [_device(part) for part in each.cards]}
        pod["spec"][each.container] = _spec(each)
    return pods


def _device(part: PartUsage) -> dict[str, Any]:
    return _without_zeros(
        id=part.uuid,
        card_idx=str(part.card),
        gpu=part.used_cores,
        mem=part.used_mib,
        pids=list(part.pids),
        device_mem=part.total_mib,
    )


def _spec(container: ContainerUsage) -> dict[str, Any]:
    cores = sum(part.cores for part in container.cards)
    return _without_zeros(gpu=cores / 100, mem=container.asked_mib)


def _without_zeros(**fields: Any) -> dict[str, Any]:
    """Omits zeros, like its protocol."""
    return {name: value for name, value in fields.items() if value}
