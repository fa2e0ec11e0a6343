"""Reads Halfcard's own pods and workloads, why they do not run, and which rights they lack."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import msgspec

from halfcard import names
from kube.api.calls import NoAnswerError
from settings.installation import Settings

from ..diagnosis import observations, process_observations
from ..diagnosis.own_objects import MissingRight, OwnPod, WorkloadSnapshot
from ..diagnosis.processes.expected_rights import Right, grants
from ..diagnosis.snapshot import Object
from .reader import Reader

_CORE: Final = "/api/v1"
_OURS: Final = f"{_CORE}/namespaces/{names.NAMESPACE}"
_LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{names.NAMESPACE}/leases"
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_WORKLOADS: Final = {"DaemonSet": "/apis/apps/v1/daemonsets", "Deployment": "/apis/apps/v1/deployments"}
_MOST_LOGS: Final = 10
_LAST_LINES: Final = 5
_AT_ONCE: Final = 8


async def read_own(reader: Reader, settings: Settings, webhooks: tuple[Object, ...] | None) -> dict[str, Any]:
    events = await reader.selected(f"{_CORE}/namespaces/default/events", fieldSelector=f"source={names.AGENT}")
    about_offers = [each for each in events if each.get("reason") in ("NotOffered", "Offered")]
    leases = (names.EXTENDER_SERVICE, names.QUOTA_SERVICE, names.SCHEDULER_CONTACT)
    workloads = await _workloads(reader)
    return {
        "namespace": await reader.object(_OURS),
        "own_pods": await _pods(reader),
        "workloads": workloads,
        "missing_rights": await _missing_rights(reader, _needed(workloads, settings, webhooks)),
        "not_offered": tuple(map(observations.refusal, about_offers)),
        "leases": {name: await reader.object(f"{_LEASES}/{name}") for name in leases},
    }


async def _workloads(reader: Reader) -> tuple[WorkloadSnapshot, ...]:
    found = [
        (kind, each)
        for kind, path in _WORKLOADS.items()
        for each in await reader.collection(path, dict[str, Any]) or ()
    ]
    refusals = await reader.selected(f"{_OURS}/events", fieldSelector="reason=FailedCreate")
    events = sorted(refusals, key=lambda each: str(each.get("lastTimestamp") or ""))
    return tuple(process_observations.workload(kind, each, events) for kind, each in found)


# --- pods ------------------------------------------------------------------------------------------------------------


async def _pods(reader: Reader) -> tuple[OwnPod, ...]:
    pods = await reader.collection(f"{_OURS}/pods", dict[str, Any]) or []
    running = [each for each in pods if not process_observations.has_ended(each)]
    crashed = [each for each in running if process_observations.container_state(each).exit_code]
    lines = {each["metadata"]["name"]: await _last_line(reader, each) for each in crashed[:_MOST_LOGS]}
    return tuple(process_observations.own_pod(each, lines.get(each["metadata"]["name"], "")) for each in running)


async def _last_line(reader: Reader, pod: Object) -> str:
    """Returns the last line of the container that ended; empty where the log cannot be read."""
    query = f"?previous=true&tailLines={_LAST_LINES}"
    text = await reader.text(f"{_OURS}/pods/{pod['metadata']['name']}/log{query}")
    return process_observations.last_line(text)


# --- rights ----------------------------------------------------------------------------------------------------------


def _needed(
    workloads: Sequence[WorkloadSnapshot], settings: Settings, webhooks: tuple[Object, ...] | None
) -> list[Right]:
    """Returns the rights of the accounts that pods use: other processes may run with the rights of any user."""
    accounts = {each.account for each in workloads if each.is_ours}
    return [right for grant in grants(settings, webhooks) if grant.account in accounts for right in grant.rights()]


async def _missing_rights(reader: Reader, needed: Sequence[Right]) -> tuple[MissingRight, ...]:
    turns = asyncio.Semaphore(_AT_ONCE)

    async def is_granted(right: Right) -> bool:
        async with turns:
            return await _is_granted(reader, right)

    granted = await asyncio.gather(*map(is_granted, needed))
    return tuple(right.missing() for right, has_it in zip(needed, granted, strict=True) if not has_it)


async def _is_granted(reader: Reader, right: Right) -> bool:
    """Asks the API server's authorizers; a right counts as granted if the user may not ask."""
    try:
        answer = await reader.calls.post(_REVIEWS, msgspec.json.encode(_review(right)))
    except NoAnswerError as error:
        reader.note_once(f"POST {_REVIEWS}", str(error))
        return True
    if answer.status != HTTPStatus.CREATED:
        reader.note_once(f"POST {_REVIEWS}", answer.message())
        return True
    status: Mapping[str, Any] = msgspec.json.decode(answer.body).get("status") or {}
    return bool(status.get("allowed"))


def _review(right: Right) -> Object:
    resource, _, subresource = right.resource.partition("/")
    wanted = {"verb": right.verb, "group": right.grant.group, "resource": resource, "subresource": subresource}
    place = {"namespace": right.grant.namespace, "name": right.name}
    account = f"system:serviceaccount:{names.NAMESPACE}:{right.grant.account}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{names.NAMESPACE}", "system:authenticated"]
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": account, "groups": groups, "resourceAttributes": {**wanted, **place}},
    }
