"""Reads what keeps a workload from creating its pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import msgspec

from kube.api.calls import ApiCalls

from .cluster_state import NoClusterError
from .events import events
from .pod_target import PodTarget

_APPS: Final = "/apis/apps/v1"
_PATHS: Final = {
    "Deployment": f"{_APPS}/namespaces/%s/deployments/%s",
    "ReplicaSet": f"{_APPS}/namespaces/%s/replicasets/%s",
    "StatefulSet": f"{_APPS}/namespaces/%s/statefulsets/%s",
    "DaemonSet": f"{_APPS}/namespaces/%s/daemonsets/%s",
    "Job": "/apis/batch/v1/namespaces/%s/jobs/%s",
}
_REFUSED: Final = "FailedCreate"
_TROUBLES: Final = ("ReplicaFailure", "Suspended", "Failed")
"""The conditions with which a workload says that it creates no pods."""

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkloadReport:
    """How many pods a workload has and wants, and why there are fewer; the names of all fields are JSON keys.

    Attributes:
        wanted: None if the user may not read the workload.
        trouble: the words of its controller; empty without any.
    """

    kind: str
    name: str
    pods: int
    pending: int
    wanted: int | None = None
    trouble: str = ""

    @property
    def is_short(self) -> bool:
        return self.wanted is not None and self.pods < self.wanted

    def __str__(self) -> str:
        wants = "" if self.wanted is None else f"wants {self.wanted or 'no'} pod{'' if self.wanted == 1 else 's'} and "
        waiting = f", {self.pending} of them pending" if self.pending else ""
        return f"{self.kind} {self.name} {wants}has {self.pods or 'none'}{waiting}."


async def read_workload(calls: ApiCalls, target: PodTarget, pods: int, pending: int) -> WorkloadReport:
    """Reads the workload and, where pods are missing, the reason.

    Raises:
        NoClusterError: it does not exist.
    """
    path = _PATHS[target.kind] % (quote(target.namespace, safe=""), quote(target.name, safe=""))
    answer = await calls.get(path)
    if answer.status == HTTPStatus.NOT_FOUND:
        raise NoClusterError(f"{target} does not exist; check its namespace and its name")
    if answer.status != HTTPStatus.OK:
        return WorkloadReport(target.kind, target.title, pods, pending)
    found: Object = msgspec.json.decode(answer.body)
    report = WorkloadReport(target.kind, target.title, pods, pending, wanted(target.kind, found))
    trouble = condition_words(found) or (await _event_words(calls, target) if report.is_short else "")
    return replace(report, trouble=trouble)


def wanted(kind: str, workload: Object) -> int:
    """Returns how many pods it wants to have at a time."""
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    if kind == "DaemonSet":
        return int(status.get("desiredNumberScheduled") or 0)
    if kind != "Job":
        return int(spec.get("replicas", 1))
    if spec.get("suspend"):
        return 0
    left = spec.get("completions", 1) - status.get("succeeded", 0) if "completions" in spec else 1
    return int(min(spec.get("parallelism", 1), max(left, 0)))


def condition_words(workload: Object) -> str:
    conditions = {each["type"]: each for each in (workload.get("status") or {}).get("conditions") or ()}
    found = (conditions[name] for name in _TROUBLES if conditions.get(name, {}).get("status") == "True")
    return next((str(each.get("message") or each.get("reason") or "") for each in found), "")


async def _event_words(calls: ApiCalls, target: PodTarget) -> str:
    """Returns the newest refusal in the workload's events; only these say why a StatefulSet, DaemonSet or Job waits."""
    about = {"involvedObject.kind": target.kind, "involvedObject.name": target.name, "reason": _REFUSED}
    found = await events(calls, about, target.namespace) or []
    return next((str(each.get("message")) for each in found), "")
