"""Checks that the Services of the webhook and of the extender lead to replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halfcard import names

from ..causes import ELSEWHERE, NOT_WORKING
from ..finding import BROKEN, Check, FoundFault, several
from ..own_objects import WorkloadSnapshot
from ..presence import INSTALL
from ..snapshot import ABSENT, Snapshot
from ..webhooks.registered_webhooks import registered


def _by_service(snapshot: Snapshot) -> bool:
    return any("service" in each.client for each in registered(snapshot).values())


def _no_service(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks the Service of the webhook, and that of the extender if it runs here: schedulers may call it directly."""
    for name in (names.ADMISSION_SERVICE, names.EXTENDER_SERVICE):
        is_needed = _workload(snapshot, name) is not None or (name == names.ADMISSION_SERVICE and _by_service(snapshot))
        if snapshot.services.get(name) == ABSENT and is_needed:
            yield FoundFault(f"Service {names.NAMESPACE}/{name}", "it does not exist", "create it again", INSTALL, name)


def _workload(snapshot: Snapshot, account: str) -> WorkloadSnapshot | None:
    return next((each for each in snapshot.workloads if each.is_ours and each.account == account), None)


def _no_endpoints(snapshot: Snapshot) -> Iterator[FoundFault]:
    for name in (names.ADMISSION_SERVICE, names.EXTENDER_SERVICE):
        there = snapshot.services.get(name)
        is_used = snapshot.endpoints is not None and not snapshot.runs_in_place_of(name)
        if there and snapshot.endpoints is not None and is_used and not snapshot.endpoints.get(name):
            yield FoundFault(f"Service {names.NAMESPACE}/{name}", *_why_empty(snapshot, name), about=name)


def _why_empty(snapshot: Snapshot, name: str) -> tuple[str, str, str]:
    """Returns got, fix and command: pods that are ready are not selected, or there is nothing that creates pods."""
    ready = [pod.name for pod in snapshot.own_pods if pod.account == name and pod.is_ready]
    if ready:
        return f"its selector leads to none of {several(ready, 'ready pod')}", "restore its selector", INSTALL
    if snapshot.workloads and _workload(snapshot, name) is None:
        return "no replica behind it is ready, and no Deployment creates any", "create the Deployment again", INSTALL
    fix, command = "check why its pods are not ready", f"kubectl -n {names.NAMESPACE} get pods,endpointslices -o wide"
    return "no replica behind it is ready", fix, command


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "service-missing",
        BROKEN,
        "the Services of the webhook and of the extender exist",
        "Without them, GPU pods are refused, or wait.",
        _no_service,
        unless=ELSEWHERE,
    ),
    Check(
        "service-empty",
        BROKEN,
        "a Service of Halfcard has a ready replica",
        "Without one, GPU pods are refused, or wait.",
        _no_endpoints,
        unless=NOT_WORKING,
    ),
)
