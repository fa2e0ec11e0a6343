"""ResourceQuotas and pods as the API server gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from halfcard.quota.native_quota import ResourceQuota
from halfcard.quota.native_scopes import QuotaPod

Object = dict[str, Any]


def quota(
    hard: Mapping[str, str],
    used: Mapping[str, str] | None = None,
    *,
    name: str = "gpu",
    in_force: Mapping[str, str] | None = None,
    scopes: Sequence[str] = (),
    selector: Sequence[Object] = (),
) -> Object:
    """A ResourceQuota; without `in_force` Kubernetes has not counted it yet."""
    spec: Object = {"hard": {**hard}, "scopes": [*scopes], "scopeSelector": {"matchExpressions": [*selector]}}
    status: Object = {"hard": {**(hard if in_force is None else in_force)}, "used": {**(used or {})}}
    metadata: Object = {"namespace": "team-a", "name": name, "uid": f"uid-{name}", "resourceVersion": "7"}
    return {"kind": "ResourceQuota", "metadata": metadata, "spec": spec, "status": status}


def read(item: Object) -> ResourceQuota:
    return msgspec.convert(item, ResourceQuota)


def read_pod(**fields: Any) -> QuotaPod:
    """A pod with these fields of the spec, and `metadata` and `status` if they are given."""
    whole: Object = {key: fields.pop(key) for key in ("metadata", "status") if key in fields}
    whole["spec"] = fields
    return msgspec.convert(whole, QuotaPod)
