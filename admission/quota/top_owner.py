"""Finds the owner above a pod's controller: the Deployment of its ReplicaSet, the CronJob of its Job.

The controller reports a refusal at its own object; people look at the object that they wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import msgspec

from halfcard.pod.spec import OwnerReference
from halfcard.pod.stored_pod import StoredMetadata
from kube.api.calls import ApiCalls

_READ: Final[Mapping[tuple[str, str], str]] = {
    ("apps/v1", "ReplicaSet"): "/apis/apps/v1/namespaces/{}/replicasets/{}",
    ("batch/v1", "Job"): "/apis/batch/v1/namespaces/{}/jobs/{}",
}
"""Controllers of Kubernetes that have owners themselves, by API version and kind."""


class _Owned(msgspec.Struct):
    metadata: StoredMetadata


_OWNED: Final = msgspec.json.Decoder(_Owned)


def may_be_owned(controller: OwnerReference) -> bool:
    return (controller.api_version, controller.kind) in _READ


async def owner_above(calls: ApiCalls, namespace: str, controller: OwnerReference) -> Mapping[str, str]:
    """Returns a reference to the owner; empty where there is none, or none that may be read. Raises NoAnswerError."""
    path = _READ[controller.api_version, controller.kind]
    answer = await calls.get(path.format(quote(namespace, safe=""), quote(controller.name, safe="")))
    if answer.status != HTTPStatus.OK:
        return {}
    found = _OWNED.decode(answer.body).metadata
    top = found.controller
    if found.uid != controller.uid or top is None:
        return {}
    return {
        "apiVersion": top.api_version,
        "kind": top.kind,
        "namespace": namespace,
        "name": top.name,
        "uid": top.uid,
    }
