"""Makes the pods that workloads would create, for manifests without their pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from halfcard.problems import printable
from kube.manifests.documents import Document, to_json

_COUNTED_BY: Final[Mapping[str, str]] = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}
_MOST: Final = 100_000


class _Metadata(msgspec.Struct):
    name: str = "unnamed"
    namespace: str | None = None


class _Template(msgspec.Struct):
    metadata: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None


class _Spec(msgspec.Struct):
    template: _Template = msgspec.field(default_factory=_Template)
    replicas: int | None = None
    parallelism: int | None = None


class _Workload(msgspec.Struct):
    kind: str
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


def pods_of_workloads(documents: Sequence[Document], left_out: list[str]) -> Iterator[Document]:
    """Yields pods; none where some pods have an owner, since they exist already. Unreadable workloads go to
    `left_out`.
    """
    if any(each.kind == "Pod" and _has_owner(each.obj) for each in documents):
        return
    for document in documents:
        if document.kind in _COUNTED_BY and not _has_owner(document.obj):
            yield from _pods(document, left_out)


def _has_owner(obj: Any) -> bool:
    metadata = obj.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("ownerReferences"))


def _pods(document: Document, left_out: list[str]) -> Iterable[Document]:
    where = f"{document.source_file}:{document.line}"
    try:
        found = msgspec.json.decode(to_json(document.obj), type=_Workload)
    except msgspec.MsgspecError as error:
        left_out.append(f"{where}: the {document.kind} is left out: {printable(str(error))}")
        return ()
    wanted = getattr(found.spec, _COUNTED_BY[found.kind])
    count = 1 if wanted is None else wanted
    if not 0 <= count <= _MOST:
        left_out.append(f"{where}: the {found.kind} is left out: {count} pods; use 0 to {_MOST}")
        return ()
    return (replace(document, obj=_pod(found, number)) for number in range(count))


def _pod(workload: _Workload, number: int) -> dict[str, Any]:
    name, namespace = f"{workload.kind.lower()}-{workload.metadata.name}-{number}", workload.metadata.namespace
    template = workload.spec.template
    metadata = {**(template.metadata or {}), "name": name, **({"namespace": namespace} if namespace else {})}
    return {"kind": "Pod", "metadata": metadata, "spec": template.spec or {}}
