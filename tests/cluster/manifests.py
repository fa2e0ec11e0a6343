"""Manifests as users write them, complete enough for a real API server."""

from __future__ import annotations

from typing import Any, Final

from devcluster.objects import Object
from tests.builders import PodBuilder, pod

SHARE: Final = {"core": "0.3", "memory": "5Gi"}
"""A share as users write it; the stored pod has 30 and 20."""

_LISTS: Final = ("containers", "initContainers")
_NEVER_PULLED: Final = "example.invalid/image:1"


def complete(built: PodBuilder) -> Object:
    """Returns the manifest with an image and a DNS label as name for every container."""
    manifest = built.manifest
    for field in _LISTS:
        for container in manifest["spec"].get(field, []):
            container |= {"name": container["name"].lower(), "image": _NEVER_PULLED}
    return manifest


def share(name: str) -> Object:
    """Returns a pod with 0.3 of a card and 5Gi of its memory."""
    return complete(pod(name).asks(**SHARE))


def bad(name: str) -> Object:
    """Returns a pod with 1.5 cards, which no repair can help."""
    return complete(pod(name).asks(core="150", memory="20"))


def plain(name: str) -> Object:
    """Returns a pod without GPU."""
    return complete(pod(name).container())


def workload(kind: str, name: str, of: Object) -> Object:
    """Returns a workload with the pod as template: Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob."""
    labels = {"app": name}
    metadata = {key: value for key, value in of["metadata"].items() if key != "name"}
    template = {"metadata": {**metadata, "labels": labels}, "spec": dict(of["spec"])}
    spec: dict[str, Any] = {"template": template}
    if kind in ("Job", "CronJob"):
        template["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": labels}
    if kind == "StatefulSet":
        spec["serviceName"] = name
    if kind == "CronJob":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    group = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec}


def resource_quota(name: str, hard: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}}


def resources(stored: Object, field: str = "containers", number: int = 0) -> Any:
    """Returns limits and requests of one container of a pod."""
    return stored["spec"][field][number].get("resources", {})
