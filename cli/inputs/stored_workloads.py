"""Reads every stored pod, template and claim of a cluster, as it would be created again.

What the cluster itself has written since then is left out: the node of a pod, and records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from halfcard import names
from halfcard.dra.resource_claims import CLAIM_GROUP, CLAIM_KINDS
from halfcard.pod.holders import BUILT_IN
from halfcard.pod.owned_annotations import is_owned
from halfcard.pod.spec import PodMetadata
from halfcard.webhook_configurations import plural
from kube.api.access import Access
from kube.api.list_watch import AbsentError

from ..judge import Item, Judge
from .cluster_state import everything

Object = Mapping[str, Any]

_POD: Final = "Pod"
_MARKS: Final = ("annotations", "labels")
_CONTROLLERS: Final = frozenset(key.rpartition("/")[2] for key in BUILT_IN)


def _api_version(key: str) -> str:
    group = key.rpartition("/")[0]
    return f"{group}/v1" if group else "v1"


def _path(key: str) -> str:
    version = _api_version(key)
    return f"/{'apis' if '/' in version else 'api'}/{version}/{plural(key.rpartition('/')[2])}"


COLLECTIONS: Final[Mapping[str, str]] = {
    key: _path(key) for key in (*BUILT_IN, *(f"{CLAIM_GROUP}/{kind}" for kind in CLAIM_KINDS), _POD)
}
"""By GROUP/KIND, the path of all objects."""


def judged_again(judge: Judge, key: str, objects: Iterable[Object]) -> Iterator[Item]:
    """Yields the items that are refused or get a warning."""
    for obj in objects:
        if not _is_over(obj) and not _is_judged_elsewhere(key, obj):
            item = judge.review(_created_again(key, obj))
            if item.verdict.warnings or not item.verdict.allowed:
                yield item


def read_again(access: Access, judge: Judge, left_out: list[str]) -> Iterator[Item]:
    """Reads the whole cluster.

    Raises:
        NoClusterError, ApiError: something cannot be read.
    """
    for key, path in COLLECTIONS.items():
        with suppress(AbsentError):  # of a kind that this cluster does not have
            yield from judged_again(judge, key, everything(access, path, dict[str, Any], left_out))


def _is_over(obj: Object) -> bool:
    return (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _is_judged_elsewhere(key: str, obj: Object) -> bool:
    """Returns whether another object that is read controls this one, or it is the mirror of a static pod."""
    metadata = msgspec.convert(obj.get("metadata") or {}, PodMetadata)
    owner = metadata.controller
    return names.MIRROR_POD in (metadata.annotations or {}) or (
        owner is not None and (owner.kind in _CONTROLLERS or key != _POD)
    )


def _created_again(key: str, obj: Object) -> Object:
    titled = {**obj, "kind": key.rpartition("/")[2], "apiVersion": _api_version(key)}
    if key != _POD:
        return titled
    metadata = {
        field: {name: text for name, text in value.items() if not is_owned(name)} if field in _MARKS else value
        for field, value in obj["metadata"].items()
        if value is not None
    }
    spec = {field: value for field, value in (obj.get("spec") or {}).items() if field != "nodeName"}
    return {**titled, "metadata": metadata, "spec": spec}
