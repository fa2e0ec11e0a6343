"""Checks that a replica binds, and that pods with claims were bound through the extender."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from admission.policy_settings import policy_of
from halfcard import names

from ..causes import NOT_WORKING
from ..finding import BROKEN, WARNING, Check, FoundFault, several
from ..snapshot import ABSENT, Object, PodSnapshot, Snapshot
from .scheduler_programs import PAGE, unmanaged

_SILENT: Final = timedelta(seconds=60)
"""A Lease is renewed every few seconds, and may be taken after 15."""


# --- leaders ---------------------------------------------------------------------------------------------------------


def trouble_of(lease: Object | None, now: datetime) -> str:
    """Explains why no replica holds a Lease; empty where one does, or where it cannot be read."""
    if lease is None:
        return ""
    spec = lease.get("spec") or {}
    holder, renewed = spec.get("holderIdentity"), spec.get("renewTime")
    if lease == ABSENT:
        return "it does not exist"
    if not holder or not renewed:  # a new Lease names a holder, but was never renewed
        return "no replica holds it"
    silent = now - datetime.fromisoformat(renewed)
    return f"{holder} renewed it last {int(silent.total_seconds())} s ago" if silent > _SILENT else ""


def not_led(snapshot: Snapshot, lease: str, fix: str) -> Iterator[FoundFault]:
    if trouble := trouble_of(snapshot.leases.get(lease), snapshot.now):
        command = f"kubectl -n {names.NAMESPACE} logs -l {names.NAME_LABEL}={lease} --prefix"
        yield FoundFault(f"Lease {names.NAMESPACE}/{lease}", trouble, fix, command, about=lease)


def _without_leader(snapshot: Snapshot) -> Iterator[FoundFault]:
    return not_led(snapshot, names.EXTENDER_SERVICE, "start the extender, or read in its log why no replica leads")


# --- what became of pods ---------------------------------------------------------------------------------------------


def _bound(snapshot: Snapshot) -> list[PodSnapshot]:
    """Returns the pods created since Halfcard was installed, by creation: earlier ones have no record."""
    lease = snapshot.leases.get(names.EXTENDER_SERVICE) or ABSENT
    since = str((lease.get("metadata") or {}).get("creationTimestamp") or "")
    found = [each for each in snapshot.pods if each.asks and each.node and not each.is_static]
    return sorted([each for each in found if "" < since <= each.created], key=lambda each: (each.created, each.title))


def _strangers(snapshot: Snapshot) -> Iterator[FoundFault]:
    ours = policy_of(snapshot.settings).schedulers
    found = [each for each in _bound(snapshot) if each.scheduler not in ours and not each.is_recorded]
    for scheduler in sorted({each.scheduler for each in found}):
        titles = [each.title for each in found if each.scheduler == scheduler]
        fix = "configure that scheduler, too, and add it to the setting `schedulers`; or let its pods name another"
        yield FoundFault(f"scheduler {scheduler}", f"it bound {several(titles, 'pod')} without cards", fix)


def _by_ours(snapshot: Snapshot) -> list[PodSnapshot]:
    ours = policy_of(snapshot.settings).schedulers
    return [each for each in _bound(snapshot) if each.scheduler in ours]


def _past_extender(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Judges by the newest pod of each set of resources. Pods that are older than the first call prove nothing now."""
    pods = _by_ours(snapshot)
    recorded = [at for at, pod in enumerate(pods) if not pod.is_past_extender]
    newest = {pod.resources: at for at, pod in enumerate(pods)}
    for resources, at in newest.items():
        is_called_since = bool(recorded) and recorded[-1] > at
        if not pods[at].is_past_extender or (is_called_since and recorded[0] > at):
            continue
        if not set(resources) <= unmanaged(snapshot) or not resources:
            yield _bypassing(pods[at], is_called=is_called_since)


def _bypassing(pod: PodSnapshot, *, is_called: bool) -> FoundFault:
    """Reports a pod; `is_called` is True if the scheduler called the extender for newer pods."""
    resources = ", ".join(pod.resources) or "cards"
    then = "its node's agent chose its cards" if pod.by_agent else "it has no record of its cards"
    got = f"the newest one, {pod.title} of {pod.created}, was bound without the extender: {then}"
    add = f"add {resources} to `managedResources` in the scheduler's configuration, and restart it"
    fix = add if is_called else f"check which scheduler bound it; {PAGE}; if it has one, {add}"
    return FoundFault(f"pods that request {resources}", got, f"{fix}; the next such pod shows whether this worked")


def _unrecorded(snapshot: Snapshot) -> Iterator[FoundFault]:
    pods = [each.title for each in _by_ours(snapshot) if not each.is_recorded]
    if pods:
        fix = "check `managedResources` in the scheduler's configuration; `halfcard inspect -d` shows where they count"
        yield FoundFault("pods that request cards", f"{several(pods, 'pod')} without a record", fix)


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "extender-not-led",
        BROKEN,
        "one replica of the extender holds the Lease and renews it",
        "Without a leader, pods that request cards are not bound.",
        _without_leader,
        unless=(*NOT_WORKING, "clock-skew"),
    ),
    Check(
        "scheduler-past-extender",
        BROKEN,
        "a pod that requests cards is bound by the extender",
        "The newest pod of each set of resources shows how the scheduler works now. A pod that was bound by counts may"
        " wait on its node although another node has a fitting card. The agent gives it cards and records them.",
        _past_extender,
        unless=("scheduler-without-extender",),
    ),
    Check(
        "pods-unrecorded",
        WARNING,
        "a pod that requests cards is bound with a record of them",
        "Halfcard counts pods without a record on the cards that it would have chosen, which is a guess. Pods that are"
        " older than the installation's Lease are not reported.",
        _unrecorded,
        unless=("scheduler-without-extender", "scheduler-past-extender"),
    ),
    Check(
        "scheduler-foreign",
        WARNING,
        "pods that request cards are bound by a scheduler that calls Halfcard",
        "Other schedulers do not know cards.",
        _strangers,
    ),
)
