"""Everything that an API server keeps, by name, to see what something leaves behind."""

from __future__ import annotations

import json
from typing import Final

from halfcard import names

from .cluster import Cluster

_COMES_AND_GOES: Final = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
"""Told by everybody, and the heartbeats of the cluster itself; ours are looked at by their namespace."""

_COPIES: Final = frozenset({"componentstatuses", "endpoints"})
"""No objects of their own."""


def dump(cluster: Cluster) -> dict[str, str]:
    """The uid of each object, by its kind, namespace and name."""
    listed = cluster.kubectl("api-resources", "--verbs=list", "--output=name")
    assert listed.code == 0, listed.stderr
    kinds = sorted(set(listed.stdout.split()) - _COMES_AND_GOES - _COPIES)
    found = _all(cluster, ",".join(kinds), "--all-namespaces")
    return found | _all(cluster, "leases.coordination.k8s.io", f"--namespace={names.NAMESPACE}")


def _all(cluster: Cluster, kinds: str, scope: str) -> dict[str, str]:
    done = cluster.kubectl("get", kinds, scope, "--output=json")
    assert done.code == 0, done.stderr
    items = json.loads(done.stdout)["items"]
    return {_title(each["kind"], each["metadata"]): each["metadata"].get("uid", "") for each in items}


def _title(kind: str, metadata: dict[str, str]) -> str:
    return " ".join(filter(None, (kind, metadata.get("namespace"), metadata["name"])))
