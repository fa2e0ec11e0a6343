"""Reads and writes the Lease object; fields of other programs are preserved."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from halfcard import names

from .candidate import NEW_LEASE_HOLDER, Lease

Object = dict[str, Any]

_KEPT: Final = ("name", "namespace", "annotations")


def read_lease(lease: Object) -> Lease:
    return Lease((lease.get("spec") or {}).get("holderIdentity") or "", lease["metadata"]["resourceVersion"])


def new_lease(lease: Object) -> Object:
    """Returns a Lease to create; it keeps the annotations of a Lease that was deleted, if they are known."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {key: lease["metadata"][key] for key in _KEPT if key in lease["metadata"]},
        "spec": {"holderIdentity": NEW_LEASE_HOLDER},
    }


def renewed_lease(lease: Object, holder: str, duration_s: float, annotations: Mapping[str, str]) -> Object:
    """Returns the Lease renewed or taken by `holder`; its resourceVersion names the version that it replaces."""
    spec = lease.get("spec") or {}
    fresh = {"holderIdentity": holder, "leaseDurationSeconds": math.ceil(duration_s), "renewTime": _now()}
    if spec.get("holderIdentity") != holder:
        fresh |= {"acquireTime": fresh["renewTime"], "leaseTransitions": (spec.get("leaseTransitions") or 0) + 1}
    known = lease["metadata"].get("annotations") or {}
    return {
        **lease,
        "metadata": {**lease["metadata"], "annotations": {**known, **annotations}},
        "spec": {**spec, **fresh},
    }


def released_lease(lease: Object) -> Object:
    """Returns the Lease without holder and address."""
    known = lease["metadata"].get("annotations") or {}
    kept = {key: value for key, value in known.items() if key != names.LEADER_ADDRESS}
    spec = {key: value for key, value in (lease.get("spec") or {}).items() if key != "holderIdentity"}
    return {**lease, "metadata": {**lease["metadata"], "annotations": kept}, "spec": spec}


def _now() -> str:
    """Formats the time for people: no replica relies on another replica's clock."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
