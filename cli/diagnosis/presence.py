"""Checks that Halfcard is installed, once, and in its namespace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halfcard import names

from .causes import ELSEWHERE
from .finding import BROKEN, Check, FoundFault
from .own_objects import PROCESSES, WorkloadSnapshot
from .snapshot import ABSENT, Object, Snapshot
from .webhooks.registered_webhooks import registered

NOT_INSTALLED: Final = "not-installed"
INSTALL: Final = (
    f"helm upgrade --install halfcard deploy/chart/halfcard --namespace {names.NAMESPACE} --create-namespace --wait"
)
"""Creates what is missing of an installation, and changes back what was edited."""


def _absent(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Finds no installation only where everything that could be one can be read."""
    may_exist = (
        snapshot.webhooks is None
        or registered(snapshot)
        or any(each.account in PROCESSES for each in snapshot.workloads)
        or any(each != ABSENT for each in (*snapshot.services.values(), *snapshot.leases.values()))
    )
    if not may_exist:
        got = "no webhook, Service, Lease or workload of Halfcard's"
        yield FoundFault("the cluster", got, "install Halfcard: docs/install.md", INSTALL)


def _without_namespace(snapshot: Snapshot) -> Iterator[FoundFault]:
    found = snapshot.namespace
    if found is None or (found and not _is_being_deleted(found)):
        return
    got = "it is being deleted" if found else "it does not exist"
    fix = "install again; or, to create GPU pods without checks, delete the webhook configurations named halfcard"
    yield FoundFault(f"Namespace {names.NAMESPACE}", got, fix, INSTALL)


def _is_being_deleted(found: Object) -> bool:
    return (found.get("status") or {}).get("phase") == "Terminating"


def _elsewhere(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each in snapshot.workloads:
        if each.namespace != names.NAMESPACE and _is_like_ours(each):
            got = f"a process of Halfcard's outside of {names.NAMESPACE}"
            fix = "delete it: certificates, rights and webhooks name that namespace"
            command = f"kubectl -n {each.namespace} delete {each.kind.lower()} {each.name}"
            yield FoundFault(str(each), got, fix, command)


def _is_like_ours(each: WorkloadSnapshot) -> bool:
    return each.account in PROCESSES


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        NOT_INSTALLED,
        BROKEN,
        "the cluster has an installation of Halfcard",
        "Without one there is nothing else to check: only this is reported, with an exit code of its own. CRDs and"
        " quotas that an earlier installation left are not an installation.",
        _absent,
    ),
    Check(
        ELSEWHERE[0],
        BROKEN,
        f"the namespace {names.NAMESPACE} exists",
        "All objects of Halfcard are in it. While its webhooks stay registered, GPU pods are refused.",
        _without_namespace,
    ),
    Check(
        ELSEWHERE[1],
        BROKEN,
        f"processes of Halfcard run in {names.NAMESPACE} only",
        "A second installation writes the same objects, and one in another namespace has no rights.",
        _elsewhere,
        unless=(ELSEWHERE[0],),
    ),
)
