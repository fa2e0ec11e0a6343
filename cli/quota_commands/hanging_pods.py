"""Finds the pods of a namespace that hang in their deletion, and whether quotas still charge them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import msgspec

from halfcard.dialects import Dialects
from halfcard.node_changes import answers
from halfcard.pod.stored_pod import StoredPod
from kube.api.calls import ApiCalls
from quota.charged_pods import ChargedPod, read_charged_pod


class _Pods(msgspec.Struct):
    items: list[StoredPod]


_PODS: Final = msgspec.json.Decoder(_Pods)


async def hanging_pods(calls: ApiCalls, namespace: str, dialects: Dialects, now_s: float) -> list[str]:
    """Returns a sentence for each pod; nothing for a user who may not list the pods. Raises NoAnswerError."""
    answer = await calls.get(f"/api/v1/namespaces/{quote(namespace, safe='')}/pods")
    if answer.status != HTTPStatus.OK:
        return []
    pods = overdue(_PODS.decode(answer.body).items, dialects, now_s)
    return [sentence(pod, await _node(calls, pod.node)) for pod in pods]


def overdue(pods: Iterable[StoredPod], dialects: Dialects, now_s: float) -> list[ChargedPod]:
    """Returns the pods with a charge that should be gone by now."""
    charged = [read_charged_pod(pod, dialects) for pod in pods if not pod.is_over and pod.node]
    return [pod for pod in charged if pod is not None and pod.hangs(now_s, lambda _node: False)]


async def _node(calls: ApiCalls, name: str) -> Mapping[str, Any] | None:
    """Returns the node; an empty one where it is gone, None where the user may not read it."""
    answer = await calls.get(f"/api/v1/nodes/{quote(name, safe='')}")
    if answer.status == HTTPStatus.NOT_FOUND:
        return {}
    found: Mapping[str, Any] | None = msgspec.json.decode(answer.body) if answer.status == HTTPStatus.OK else None
    return found


def sentence(pod: ChargedPod, node: Mapping[str, Any] | None) -> str:
    """Says whether the pod is charged; `node` is empty where it is gone, None where it is not known."""
    hangs = f"{pod.namespace}/{pod.name} hangs in its deletion on node {pod.node}"
    if node is None:
        return f"{hangs}; it is charged if that node answers"
    if answers(node):
        return f"{hangs}, which answers: it is charged until kubelet has ended it"
    return f"{hangs}, which does not answer: it is not charged; delete it by force if that machine is off for good"
