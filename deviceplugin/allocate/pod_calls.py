"""The calls to the API server about one pod: read it, and record its cards."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from halfcard.api_paths import path_of_pod
from halfcard.placing.pod_facts import PodFacts
from halfcard.pod.stored_pod import StoredPod
from halfcard.problems import printable
from kube.api.calls import Answer, ApiCalls, NoAnswerError

from ..kubelet.messages import RefusedError

_POD: Final = msgspec.json.Decoder(StoredPod)


class UnansweredError(Exception):
    """The API server did not return the pod; the text says why."""


async def stored_pod(calls: ApiCalls, namespace: str, name: str) -> StoredPod:
    """Reads the pod from the API server: names are reused, and the watch may be behind."""
    try:
        answer = await calls.get(path_of_pod(namespace, name))
    except NoAnswerError as error:
        raise UnansweredError(str(error)) from None
    if answer.status == HTTPStatus.NOT_FOUND:
        raise RefusedError(f"pod {namespace}/{name} is gone")
    if answer.status != HTTPStatus.OK:
        raise UnansweredError(_quoted(answer))
    return _POD.decode(answer.body)


async def record(calls: ApiCalls, pod: PodFacts, annotations: Mapping[str, str]) -> StoredPod | None:
    """Writes annotations and returns the pod; None where it has changed since it was read, so nothing is lost."""
    metadata = {"uid": pod.uid, "resourceVersion": pod.version, "annotations": annotations}
    body = msgspec.json.encode({"metadata": metadata})
    try:
        answer = await calls.patch(path_of_pod(pod.namespace, pod.name), body)
    except NoAnswerError as error:
        raise RefusedError(f"pod {pod.title}: its cards cannot be recorded: {error}; kubelet tries again") from None
    if answer.status == HTTPStatus.CONFLICT:
        return None
    if answer.status != HTTPStatus.OK:
        raise RefusedError(f"pod {pod.title}: the API server refuses the record of its cards: {_quoted(answer)}")
    return _POD.decode(answer.body)


def _quoted(answer: Answer) -> str:
    return printable(answer.refusal())
