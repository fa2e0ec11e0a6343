"""Everything that an API server keeps, with its content, to see what something changes and leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from devcluster.cluster import Cluster
from devcluster.objects import Object
from halfcard import names

_COMES_AND_GOES: Final = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
"""Told by everybody, and the heartbeats of the cluster itself; ours are looked at by their namespace."""

_COPIES: Final = frozenset({"componentstatuses", "endpoints"})
"""No objects of their own."""

_COUNTED: Final = ("managedFields", "resourceVersion", "generation")
"""How often something was written and by whom; what was written is compared."""

Dump: TypeAlias = Mapping[str, Object]
"""Each object by its kind, namespace and name."""


def dump(cluster: Cluster) -> Dump:
    listed = cluster.kubectl("api-resources", "--verbs=list", "--output=name")
    assert listed.code == 0, listed.stderr
    kinds = sorted(set(listed.stdout.split()) - _COMES_AND_GOES - _COPIES)
    found = _all(cluster, ",".join(kinds), "--all-namespaces")
    return found | _all(cluster, "leases.coordination.k8s.io", f"--namespace={names.NAMESPACE}")


def changes(before: Dump, after: Dump) -> dict[str, list[str]]:
    """Which fields of which objects differ, where an object was there before; `gone` are all of them."""
    found = {title: _differing(item, after[title]) if title in after else ["gone"] for title, item in before.items()}
    return {title: fields for title, fields in found.items() if fields}


def _differing(before: Object, after: Object) -> list[str]:
    first, second = dict(_fields(before)), dict(_fields(after))
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def _fields(value: Object, path: str = "") -> Iterator[tuple[str, Any]]:
    """By their paths; a list is one field."""
    for key, each in value.items():
        if isinstance(each, dict):
            yield from _fields(each, f"{path}{key} ")
        else:
            yield f"{path}{key}", each


def _all(cluster: Cluster, kinds: str, scope: str) -> dict[str, Object]:
    done = cluster.kubectl("get", kinds, scope, "--output=json")
    assert done.code == 0, done.stderr
    items = [_still(each) for each in json.loads(done.stdout)["items"]]
    return {_title(each["kind"], each["metadata"]): each for each in items}


def _still(item: Object) -> Object:
    metadata = {key: value for key, value in item["metadata"].items() if key not in _COUNTED}
    status = item.get("status", {})
    still = _STILL[item["kind"]](status) if item["kind"] in _STILL else status
    return {**item, "metadata": metadata, "status": still}


def _still_of_pod(status: Object) -> Object:
    """Who runs; whatever else kubelet knows of containers it tells when it happens to look."""
    runs = {each["name"]: each.get("containerID") for each in status.get("containerStatuses", ())}
    return {"phase": status["phase"], "runs": runs}


def _still_of_node(status: Object) -> Object:
    """Without heartbeats, and the images that happen to be there."""
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    return {**{key: status[key] for key in ("capacity", "allocatable")}, "conditions": conditions}


_STILL: Final[Mapping[str, Callable[[Object], Object]]] = {"Node": _still_of_node, "Pod": _still_of_pod}


def _title(kind: str, metadata: Mapping[str, str]) -> str:
    return " ".join(filter(None, (kind, metadata.get("namespace"), metadata["name"])))
