"""The requests to the API server about one pod, as paths and bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from halfcard import names
from halfcard.api_paths import path_of_pod
from halfcard.placing.pod_facts import PodFacts


class BindCall(NamedTuple):
    """kube-scheduler's call to bind a pod."""

    pod_name: str
    pod_namespace: str
    pod_uid: str
    node: str


def pod_path(facts: PodFacts) -> str:
    return path_of_pod(facts.namespace, facts.name)


def binding_path(facts: PodFacts) -> str:
    return f"{pod_path(facts)}/binding"


def eviction(name: str, options: Mapping[str, Any]) -> bytes:
    """Returns the body of an eviction; `options` are those of the deletion."""
    metadata = {"name": name}
    return msgspec.json.encode(
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
    )


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
