"""Reads all objects of an API server, to see what an installation changes and leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from devcluster.cluster import Cluster
from devcluster.objects import Object
from halfcard import names

_VOLATILE: Final = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
"""Events, and heartbeats of the cluster; leases of Halfcard are read from its namespace."""

_COPIES: Final = frozenset({"componentstatuses", "endpoints"})
"""Views of other objects."""

_COUNTED: Final = ("managedFields", "resourceVersion", "generation")
"""Fields that tell how often an object was written and by whom; only its content is compared."""

Dump: TypeAlias = Mapping[str, Object]
"""The objects by kind, namespace and name."""


def dump(cluster: Cluster) -> Dump:
    listed = cluster.kubectl("api-resources", "--verbs=list", "--output=name")
    assert listed.code == 0, listed.stderr
    kinds = sorted(set(listed.stdout.split()) - _VOLATILE - _COPIES)
    found = _all(cluster, ",".join(kinds), "--all-namespaces")
    return found | _all(cluster, "leases.coordination.k8s.io", f"--namespace={names.NAMESPACE}")


def changes(before: Dump, after: Dump) -> dict[str, list[str]]:
    """Returns the changed fields of each object of `before`; `gone` stands for a deleted object."""
    found = {title: _differing(item, after[title]) if title in after else ["gone"] for title, item in before.items()}
    return {title: fields for title, fields in found.items() if fields}


def _differing(before: Object, after: Object) -> list[str]:
    first, second = dict(_fields(before)), dict(_fields(after))
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def _fields(value: Object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the fields with their paths; a list is one field."""
    for key, each in value.items():
        if isinstance(each, dict):
            yield from _fields(each, f"{path}{key} ")
        else:
            yield f"{path}{key}", each


def _all(cluster: Cluster, kinds: str, scope: str) -> dict[str, Object]:
    done = cluster.kubectl("get", kinds, scope, "--output=json")
    assert done.code == 0, done.stderr
    items = [_stable(each) for each in json.loads(done.stdout)["items"]]
    return {_title(each["kind"], each["metadata"]): each for each in items}


def _stable(item: Object) -> Object:
    metadata = {key: value for key, value in item["metadata"].items() if key not in _COUNTED}
    status = item.get("status", {})
    stable = _STABLE_STATUS[item["kind"]](status) if item["kind"] in _STABLE_STATUS else status
    return {**item, "metadata": metadata, "status": stable}


def _stable_pod_status(status: Object) -> Object:
    """Returns phase and container ids; kubelet updates the other fields at any time."""
    runs = {each["name"]: each.get("containerID") for each in status.get("containerStatuses", ())}
    return {"phase": status["phase"], "runs": runs}


def _stable_node_status(status: Object) -> Object:
    """Returns the status without heartbeats and images."""
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    return {**{key: status[key] for key in ("capacity", "allocatable")}, "conditions": conditions}


_STABLE_STATUS: Final[Mapping[str, Callable[[Object], Object]]] = {
    "Node": _stable_node_status,
    "Pod": _stable_pod_status,
}


def _title(kind: str, metadata: Mapping[str, str]) -> str:
    return " ".join(filter(None, (kind, metadata.get("namespace"), metadata["name"])))
