"""Reads every stored pod and template of a cluster, as it would be created again.

What the cluster itself has written since then is left out: the node of a pod, and records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from admission.writes import TEMPLATES
from halfcard import names
from halfcard.pod.owned_annotations import is_owned
from halfcard.pod.spec import PodMetadata
from kube.api.access import Access

from ..judge import Item, Judge
from .cluster_state import everything

_APPS, _BATCH, _CORE = "/apis/apps/v1", "/apis/batch/v1", "/api/v1"
COLLECTIONS: Final[Mapping[str, str]] = {
    "Deployment": f"{_APPS}/deployments",
    "StatefulSet": f"{_APPS}/statefulsets",
    "DaemonSet": f"{_APPS}/daemonsets",
    "ReplicaSet": f"{_APPS}/replicasets",
    "ReplicationController": f"{_CORE}/replicationcontrollers",
    "Job": f"{_BATCH}/jobs",
    "CronJob": f"{_BATCH}/cronjobs",
    "PodTemplate": f"{_CORE}/podtemplates",
    "Pod": f"{_CORE}/pods",
}

Object = Mapping[str, Any]


def judged_again(judge: Judge, kind: str, objects: Iterable[Object]) -> Iterator[Item]:
    """Yields the items that are refused or get a warning."""
    for obj in objects:
        if not _is_over(obj) and not _is_judged_elsewhere(kind, obj):
            item = judge.review(_created_again(kind, obj))
            if item.verdict.warnings or not item.verdict.allowed:
                yield item


def read_again(access: Access, judge: Judge, left_out: list[str]) -> Iterator[Item]:
    """Reads the whole cluster.

    Raises:
        NoClusterError, ApiError: something cannot be read.
    """
    for kind, path in COLLECTIONS.items():
        yield from judged_again(judge, kind, everything(access, path, dict[str, Any], left_out))


def _is_over(obj: Object) -> bool:
    return (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _is_judged_elsewhere(kind: str, obj: Object) -> bool:
    """Returns whether a listed controller owns the object, or it is the mirror of a static pod."""
    metadata = msgspec.convert(obj.get("metadata") or {}, PodMetadata)
    owner = metadata.controller
    return names.MIRROR_POD in (metadata.annotations or {}) or (
        owner is not None and (owner.kind in TEMPLATES or kind != "Pod")
    )


def _created_again(kind: str, obj: Object) -> Object:
    if kind != "Pod":
        return {**obj, "kind": kind}
    metadata = {
        key: {name: text for name, text in value.items() if not is_owned(name)} if key in _MARKS and value else value
        for key, value in obj["metadata"].items()
    }
    spec = {key: value for key, value in (obj.get("spec") or {}).items() if key != "nodeName"}
    return {**obj, "kind": kind, "metadata": metadata, "spec": spec}


_MARKS: Final = ("annotations", "labels")
