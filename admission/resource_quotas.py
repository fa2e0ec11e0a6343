"""The decision on ResourceQuotas: unclear amounts are refused, and keys that Kubernetes would not count get a twin."""

from __future__ import annotations

from halfcard import names
from halfcard.quota.native_quota import ResourceQuota
from halfcard.quota.requests_twin import settle, unreadable

from .policy import AdmissionPolicy
from .repairs import RepairedPod, set_annotations
from .review import verdict_of
from .verdict import Verdict


def mutate_quota(quota: ResourceQuota, policy: AdmissionPolicy, *, old: ResourceQuota | None = None) -> Verdict:
    """Respells amounts, and adds, updates or removes twins; refuses unreadable amounts, of an update only new ones."""
    if problems := unreadable(quota, policy.dialects):
        known = unreadable(old, policy.dialects) if old else []
        return verdict_of([problem for problem in problems if problem not in known], policy)
    settled = settle(quota, policy.dialects)
    marks = set_annotations(quota, {names.QUOTA_TWINS: settled.marks})
    return verdict_of([], policy, RepairedPod((*settled.changes, *marks), settled.notes))
