"""Reads pods that do not exist yet, as they would be stored."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from typing import Any, Final

import msgspec

from admission.policy_settings import policy_of
from halfcard.exit_codes import UnusableInputError
from halfcard.patches import apply
from halfcard.pod.reported_pod import ReportedPod
from halfcard.problems import printable
from kube.api.calls import ApiCalls
from kube.manifests.documents import Document, read_path, to_json
from kube.manifests.gather import gather, stored_pod
from kube.manifests.manifest_error import ManifestError
from settings.settings_file import load_settings

from ..inputs.cluster_state import NoClusterError, ask, default_namespace, pods_path
from ..inputs.workload_pods import pods_of_workloads
from ..judge import Judge
from .sources import entries

_POD: Final = msgspec.json.Decoder(ReportedPod)
_NAME_CHARS: Final = 200
_WORDS_CHARS: Final = 2000
_MAY_NOT_CREATE: Final = 'cannot create resource "pods"'

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedPod:
    """A pod of a manifest, or the first one of a workload: as it would be stored, or why it would be refused."""

    title: str
    pod: ReportedPod | None
    refusal: str = ""


def planned_pods(arguments: argparse.Namespace) -> list[PlannedPod]:
    """Returns the pods of the manifests; raises UnusableInputError where there is none."""
    namespace = arguments.namespace or default_namespace(arguments)
    pods = [_in_namespace(each, namespace) for each in _pods(arguments.file)]
    if arguments.state is not None:
        return _judged(arguments, pods)
    return ask(arguments, lambda calls: _tried(calls, pods))


def _pods(file: str) -> list[Object]:
    documents: list[Document] = []
    for each in entries([file], allow_empty=False):
        if isinstance(each, ManifestError):
            raise each
        if isinstance(each, Document):
            documents.append(each)
    found = [*_first_of_each(documents)]
    if not found:
        kinds = ", ".join(sorted({each.kind for each in documents})) or "none"
        raise UnusableInputError(
            f"{file}: no object creates pods: got {kinds}; name a pod, Deployment, Job or the like"
        )
    return found


def _first_of_each(documents: list[Document]) -> Iterator[Object]:
    for document in documents:
        left_out: list[str] = []
        if document.kind == "Pod":
            yield document.obj
        for made in islice(pods_of_workloads([document], left_out), 1):
            yield _named_as(document.obj, made.obj)
        if left_out:
            raise UnusableInputError("; ".join(left_out))


def _named_as(workload: Object, pod: Object) -> Object:
    """Returns a pod with the name of its workload."""
    return {**pod, "metadata": {**pod["metadata"], "name": (workload.get("metadata") or {}).get("name", "")}}


def _in_namespace(pod: Object, default: str) -> Object:
    metadata = pod.get("metadata") or {}
    return {"apiVersion": "v1", **pod, "metadata": {**metadata, "namespace": metadata.get("namespace") or default}}


def _title(pod: Object) -> str:
    metadata = pod["metadata"]
    return f"{metadata['namespace']}/{metadata.get('name') or metadata.get('generateName', '')}"


# --- the API server judges -------------------------------------------------------------------------------------------


async def _tried(calls: ApiCalls, pods: list[Object]) -> list[PlannedPod]:
    return [await _dry_run(calls, each) for each in pods]


async def _dry_run(calls: ApiCalls, pod: Object) -> PlannedPod:
    """Creates a pod for show, under a new name: one of this name may exist."""
    namespace = pod["metadata"]["namespace"]
    metadata = {key: pod["metadata"][key] for key in ("namespace", "labels", "annotations") if key in pod["metadata"]}
    name = _title(pod).partition("/")[2][:_NAME_CHARS].rstrip("-.")
    tried = {**pod, "kind": "Pod", "metadata": {**metadata, "generateName": f"{name}-"}}
    answer = await calls.post(f"{pods_path(namespace)}?dryRun=All", msgspec.json.encode(tried))
    if answer.status == HTTPStatus.CREATED:
        return PlannedPod(_title(pod), _POD.decode(answer.body))
    message = answer.message() or f"HTTP {answer.status}"
    if _MAY_NOT_CREATE in message:
        raise NoClusterError(
            f"you may not create pods in namespace {namespace}, nor try to; ask for the ClusterRole edit there"
        )
    return PlannedPod(_title(pod), None, printable(message, _WORDS_CHARS))


# --- the rules judge -------------------------------------------------------------------------------------------------


def _judged(arguments: argparse.Namespace, pods: list[Object]) -> list[PlannedPod]:
    settings = load_settings(arguments.settings)
    view = gather(read_path(arguments.state), settings.capacity_rules())
    judge = Judge(policy_of(settings), view)
    return [_judge(judge, {**each, "kind": "Pod"}) for each in pods]


def _judge(judge: Judge, pod: Object) -> PlannedPod:
    item = judge.review(pod)
    if not item.allowed:
        return PlannedPod(_title(pod), None, "; ".join(map(str, item.verdict.problems)))
    stored = stored_pod(apply(pod, item.verdict.changes))
    return PlannedPod(_title(pod), _POD.decode(to_json(stored)))
