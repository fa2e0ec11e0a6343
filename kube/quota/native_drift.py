"""Compares what ResourceQuotas say is used with the sum of their pods.

Kubernetes charges a pod before it is stored, and frees it some time after it has ended. So only what two comparisons
find is a drift.
"""

from __future__ import annotations

from collections.abc import Mapping

from halfcard.quantity import InvalidQuantity
from halfcard.quota.native_quota import ResourceQuota
from halfcard.quota.native_scopes import QuotaPod
from halfcard.quota.native_usage import Drift, drifts

from ..api.calls import ApiCalls
from .native_quota_source import pods_in, quotas_in

Found = Mapping[str, tuple[Drift, ...]]
"""The drifts found, by the title of the quota."""


async def look(calls: ApiCalls, namespace: str, resources: frozenset[str], now_s: float) -> Found:
    """Compares the quotas of a namespace that do not change meanwhile. Raises ReadError and NoAnswerError."""
    before = {each.title: each.used for each in await quotas_in(calls, namespace)}
    pods = await pods_in(calls, namespace)
    steady = [each for each in await quotas_in(calls, namespace) if before.get(each.title) == each.used]
    found = {each.title: _of(each, pods, resources, now_s) for each in steady}
    return {title: drift for title, drift in found.items() if drift}


def _of(quota: ResourceQuota, pods: list[QuotaPod], resources: frozenset[str], now_s: float) -> tuple[Drift, ...]:
    try:
        return tuple(drifts(quota, pods, resources, now_s))
    except InvalidQuantity:
        return ()  # an unreadable amount cannot be compared


def lasting(first: Found, second: Found) -> Found:
    """Returns the drifts that both comparisons found."""
    keys = {title: {each.key for each in found} for title, found in first.items()}
    still = {title: tuple(each for each in found if each.key in keys.get(title, ())) for title, found in second.items()}
    return {title: found for title, found in still.items() if found}
