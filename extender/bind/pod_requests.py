"""The requests to the API server about one pod, as paths and bodies."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

import msgspec

from halfcard import names
from halfcard.placing.pod_facts import PodFacts


class BindCall(NamedTuple):
    """kube-scheduler's call to bind a pod."""

    pod_name: str
    pod_namespace: str
    pod_uid: str
    node: str


def path_of_pod(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def pod_path(facts: PodFacts) -> str:
    return path_of_pod(facts.namespace, facts.name)


def binding_path(facts: PodFacts) -> str:
    return f"{pod_path(facts)}/binding"


def fence_patch(uid: str, fence: str) -> bytes:
    """Returns a patch that adds a fence; with the uid it fails for another pod of that name."""
    return msgspec.json.encode({"metadata": {"uid": uid, "annotations": {names.FENCE: fence}}})


def binding(assumed: PodFacts) -> bytes:
    """Returns a Binding, which the API server refuses if the pod has another uid or version."""
    metadata = {
        "name": assumed.name,
        "namespace": assumed.namespace,
        "uid": assumed.uid,
        "resourceVersion": assumed.version,
        "annotations": assumed.owned,
    }
    target = {"apiVersion": "v1", "kind": "Node", "name": assumed.node}
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target})
