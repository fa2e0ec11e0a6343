"""Converts pods and workloads of the API server to what the checks of Halfcard's own processes use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from halfcard import names

from .own_objects import ContainerState, OwnPod, TaintToleration, WorkloadSnapshot

Object = Mapping[str, Any]
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")


def moment(written: str) -> datetime:
    return datetime.fromisoformat(written)


def own_pod(pod: Object, last_line: str = "") -> OwnPod:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    ready, scheduled = _condition(status, "Ready"), _condition(status, "PodScheduled")
    created = metadata["creationTimestamp"]
    return OwnPod(
        metadata["name"],
        spec.get("serviceAccountName") or "",
        spec.get("nodeName") or "",
        is_ready=ready.get("status") == "True",
        since=moment(ready.get("lastTransitionTime") or created),
        started=moment(status.get("startTime") or created),
        container=container_state(pod)._replace(last_line=last_line),
        unscheduled=scheduled.get("message") or "" if scheduled.get("status") == "False" else "",
        settings=(metadata.get("annotations") or {}).get(names.SETTINGS_HASH, ""),
    )


def _condition(status: Object, kind: str) -> Object:
    return next((each for each in status.get("conditions") or () if each.get("type") == kind), {})


def container_state(pod: Object) -> ContainerState:
    """Returns the state of the container that keeps the pod from being ready; else of the first one."""
    status = pod.get("status") or {}
    found = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    unready = [each for each in found if not each.get("ready")]
    return _state(next(iter(unready or found), {}))


def _state(status: Object) -> ContainerState:
    state: Object = status.get("state") or {}
    waiting: Object = state.get("waiting") or {}
    ended: Object = state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    return ContainerState(
        status.get("image") or "",
        waiting.get("reason") or "",
        waiting.get("message") or "",
        status.get("restartCount") or 0,
        ended.get("exitCode"),
        ended.get("reason") or "",
    )


def last_line(log: str) -> str:
    lines = [text for line in log.splitlines() if (text := _COLOUR.sub("", line).strip())]
    return lines[-1] if lines else ""


def has_ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def workload(kind: str, item: Object, events: Iterable[Object] = ()) -> WorkloadSnapshot:
    """Reads a workload; `events` are those about pods that could not be created, the newest last."""
    metadata, template = item["metadata"], item["spec"]["template"]
    spec = template["spec"]
    volumes = [(each.get("configMap") or {}).get("name") for each in spec.get("volumes") or ()]
    lacks = _lacks(kind, item)
    return WorkloadSnapshot(
        kind,
        metadata["namespace"],
        metadata["name"],
        spec.get("serviceAccountName") or "",
        tuple(str(each.get("image") or "") for each in spec.get("containers") or ()),
        tuple(name for name in volumes if name),
        is_off=item["spec"].get("replicas") == 0,
        lacks=lacks,
        refusal=_refusal(item, events) if lacks else "",
        selector=tuple(sorted((spec.get("nodeSelector") or {}).items())),
        tolerations=tuple(_toleration(each) for each in spec.get("tolerations") or ()),
    )


def _lacks(kind: str, item: Object) -> int:
    """Returns how many pods it has not created; 0 while its controller has not seen this version of it."""
    status, generation = item.get("status") or {}, item["metadata"].get("generation", 0)
    if status.get("observedGeneration", -1) < generation:
        return 0
    if kind == "DaemonSet":
        return int(status.get("desiredNumberScheduled") or 0) - int(status.get("currentNumberScheduled") or 0)
    return max(int(item["spec"].get("replicas", 1)) - int(status.get("replicas") or 0), 0)


def _refusal(item: Object, events: Iterable[Object]) -> str:
    """Returns the API server's words: a Deployment has them in a condition, a DaemonSet only in Events."""
    condition = _condition(item.get("status") or {}, "ReplicaFailure")
    name = item["metadata"]["name"]
    own = [each for each in events if (each.get("involvedObject") or {}).get("name") == name]
    return str(condition.get("message") or (own[-1].get("message") if own else "") or "")


def _toleration(written: Object) -> TaintToleration:
    return TaintToleration(
        written.get("key") or "",
        written.get("operator") or "Equal",
        written.get("value") or "",
        written.get("effect") or "",
    )
