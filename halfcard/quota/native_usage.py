"""Compares the sum of a namespace's pods with the `used` of its ResourceQuotas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..pod.request_totals import pod_cost
from ..quantity import Quantity
from .native_quota import COUNTED, ResourceQuota
from .native_scopes import QuotaPod


class Drift(NamedTuple):
    """A resource whose `used` differs from the sum of the pods."""

    key: str
    used: str
    real: str


def in_use(
    quota: ResourceQuota, pods: Iterable[QuotaPod], resources: frozenset[str], now_s: float
) -> dict[str, Quantity]:
    """Sums the pods of a namespace that a quota counts. Raises InvalidQuantity."""
    total = dict.fromkeys(resources, 0)
    for pod in pods:
        if not pod.is_released(now_s) and quota.counts(pod):
            for resource, amount in pod_cost(pod, resources).items():
                total[resource] += amount.nanos
    return {resource: Quantity(nanos) for resource, nanos in total.items()}


def drifts(quota: ResourceQuota, pods: Iterable[QuotaPod], resources: frozenset[str], now_s: float) -> list[Drift]:
    """Finds the counted resources whose `used` differs from the sum of the pods. Raises InvalidQuantity."""
    enforced = quota.enforced
    counted = frozenset(each for each in resources if COUNTED + each in enforced)
    real = in_use(quota, pods, counted, now_s) if counted else {}
    said = {each: quota.used[COUNTED + each] for each in sorted(counted)}
    return [
        Drift(COUNTED + each, used, str(real[each]))
        for each, used in said.items()
        if Quantity.parse(used) != real[each]
    ]
