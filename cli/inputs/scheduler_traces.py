"""Reads what a scheduler said about a pod in events, and what shows that such a scheduler runs."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

from extender.explain.scheduling import SchedulerReport, SchedulerTraces
from halfcard import names
from halfcard.pod.reported_pod import ReportedPod
from kube.api.calls import ApiCalls

from .events import events, last_seen

_FAILED: Final = "FailedScheduling"
_LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/{names.KUBE_SYSTEM}/leases/kube-scheduler"


class SchedulerSigns(NamedTuple):
    report: SchedulerReport | None
    traces: SchedulerTraces


async def read_scheduler_signs(calls: ApiCalls, pod: ReportedPod, placed: int) -> SchedulerSigns:
    """Reads the events of a pod, else those of its scheduler; `placed` is how many other pods of it have a node."""
    about = {"involvedObject.uid": pod.meta.uid, "reason": _FAILED}
    for event in await events(calls, about, pod.meta.namespace or "") or ():
        return SchedulerSigns(SchedulerReport(_FAILED, str(event.get("message")), last_seen(event)), SchedulerTraces())
    written = await events(calls, {"source": pod.scheduler}, most=1)
    lease = await _lease_renewed(calls) if pod.scheduler == names.DEFAULT_SCHEDULER else None
    return SchedulerSigns(None, SchedulerTraces(placed, None if written is None else bool(written), lease))


async def _lease_renewed(calls: ApiCalls) -> str | None:
    answer = await calls.get(_LEASE)
    if answer.status == HTTPStatus.NOT_FOUND:
        return ""
    if answer.status != HTTPStatus.OK:
        return None
    return str(msgspec.json.decode(answer.body)["spec"].get("renewTime") or "")
