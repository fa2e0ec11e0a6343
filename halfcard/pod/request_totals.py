"""Computes a pod's total requests by the formula of the API server's own quota plugin.

max(sum of app containers + sum of sidecars, max over init stages of (stage + sidecars started before it)) + overhead,
from requests alone: extended resources have no overcommit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..quantity import Quantity
from .spec import Amounts, Container, Pod

Nanos = dict[str, int]


def pod_cost(pod: Pod, resources: frozenset[str]) -> Mapping[str, Quantity]:
    """Returns the total of each of these resources that the pod names; 0 for a request of 0."""
    if pod.spec is None:
        return {}
    stages = pod.spec.init_containers or []
    running = _sum(_requests(each, resources) for each in (*(pod.spec.containers or ()), *_sidecars(stages)))
    needed = _max((running, *_init_stages(stages, resources)))
    total = _sum((needed, _nanos(pod.spec.overhead or {}, resources)))
    return {resource: Quantity(nanos) for resource, nanos in total.items()}


def _sidecars(stages: Iterable[Container]) -> Iterable[Container]:
    return (stage for stage in stages if stage.is_sidecar)


def _init_stages(stages: Iterable[Container], resources: frozenset[str]) -> Iterable[Nanos]:
    """Yields the total while each init stage runs: a sidecar counts from its start on."""
    started: Nanos = {}
    for stage in stages:
        needed = _sum((started, _requests(stage, resources)))
        if stage.is_sidecar:
            started = needed
        yield needed


def _requests(container: Container, resources: frozenset[str]) -> Nanos:
    """Returns requests, or limits where requests are absent, like the API server."""
    return _nanos({**container.limits, **container.requests}, resources)


def _nanos(amounts: Amounts, resources: frozenset[str]) -> Nanos:
    return {name: Quantity.parse(str(text)).nanos for name, text in amounts.items() if name in resources}


def _sum(parts: Iterable[Nanos]) -> Nanos:
    total: Nanos = {}
    for part in parts:
        for name, nanos in part.items():
            total[name] = total.get(name, 0) + nanos
    return total


def _max(parts: Iterable[Nanos]) -> Nanos:
    peak: Nanos = {}
    for part in parts:
        for name, nanos in part.items():
            peak[name] = max(peak.get(name, 0), nanos)
    return peak
