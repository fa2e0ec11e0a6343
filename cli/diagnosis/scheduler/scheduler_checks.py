"""Checks that the scheduler calls the extender for every pod with claims, and that a replica binds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from admission.policy_settings import policy_of
from halfcard import names

from ..causes import NOT_WORKING
from ..finding import BROKEN, WARNING, Check, FoundFault, several
from ..snapshot import ABSENT, Object, PodSnapshot, Scheduler, Snapshot

_SILENT: Final = timedelta(seconds=60)
"""A Lease is renewed every few seconds, and may be taken after 15."""

_PAGE: Final = "start it with a configuration of deploy/scheduler (docs/scheduler.md)"


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
        if not set(resources) <= _unmanaged(snapshot) or not resources:
            yield _bypassing(pods[at], is_called=is_called_since)


def _bypassing(pod: PodSnapshot, *, is_called: bool) -> FoundFault:
    """Reports a pod; `is_called` is True if the scheduler called the extender for newer pods."""
    resources = ", ".join(pod.resources) or "cards"
    then = "its node's agent chose its cards" if pod.by_agent else "it has no record of its cards"
    got = f"the newest one, {pod.title} of {pod.created}, was bound without the extender: {then}"
    add = f"add {resources} to `managedResources` in the scheduler's configuration, and restart it"
    fix = add if is_called else f"check which scheduler bound it; {_PAGE}; if it has one, {add}"
    return FoundFault(f"pods that request {resources}", got, f"{fix}; the next such pod shows whether this worked")


def _unrecorded(snapshot: Snapshot) -> Iterator[FoundFault]:
    pods = [each.title for each in _by_ours(snapshot) if not each.is_recorded]
    if pods:
        fix = "check `managedResources` in the scheduler's configuration; `halfcard inspect -d` shows where they count"
        yield FoundFault("pods that request cards", f"{several(pods, 'pod')} without a record", fix)


# --- the scheduler's configuration -----------------------------------------------------------------------------------


def _readable(snapshot: Snapshot) -> list[tuple[Scheduler, list[Object]]]:
    """Returns the schedulers with a readable configuration, and their extenders."""
    found = [(each, each.configuration) for each in snapshot.schedulers if each.configuration is not None]
    return [(each, _extenders(configuration)) for each, configuration in found]


def _extenders(configuration: Object) -> list[Object]:
    """Reads the extenders of a configuration, whose content may be anything."""
    found = configuration.get("extenders")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _unconfigured(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each in snapshot.schedulers:
        if not each.file:
            yield FoundFault(f"pod {each.pod}", "kube-scheduler runs without --config", _PAGE)
    for each, extenders in _readable(snapshot):
        if not any(extender.get("filterVerb") for extender in extenders):
            yield FoundFault(f"pod {each.pod}", f"{each.file} names no extender", _PAGE)


def _unmanaged(snapshot: Snapshot) -> set[str]:
    """Returns the offered resources that a readable configuration lacks."""
    return {resource for _, extenders in _readable(snapshot) for resource in _lacking(snapshot, extenders)}


def _lacking(snapshot: Snapshot, extenders: list[Object]) -> list[str]:
    there = {resource for node in snapshot.nodes for resource in node.offers}
    managed = {item.get("name") for extender in extenders for item in extender.get("managedResources") or ()}
    return sorted((there & snapshot.settings.enabled_dialects().resources) - managed) if managed else []


def _misconfigured(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each, extenders in _readable(snapshot):
        if missing := _lacking(snapshot, extenders):
            got = f"managedResources lacks {', '.join(missing)}"
            yield FoundFault(f"pod {each.pod}", got, f"add it: pods that request it bypass Halfcard; {_PAGE}")
        for extender in extenders:
            for got, fix in _flaws(extender):
                yield FoundFault(f"pod {each.pod}", f"the extender {got}", f"{fix}; {_PAGE}")


def _flaws(extender: Object) -> Iterator[tuple[str, str]]:
    if extender.get("filterVerb") and not extender.get("bindVerb"):
        yield "has no bindVerb", "add it: without it, nothing is recorded"
    if extender.get("ignorable"):
        yield "is ignorable", "make it `ignorable: false`"
    tls = extender.get("tlsConfig") or {}
    if extender.get("enableHTTPS") and not (tls.get("caFile") or tls.get("caData")):
        yield "is called by HTTPS without caFile", "add it: without it, any server at that address is trusted"


# --- what only quotas count ------------------------------------------------------------------------------------------


def _asks_derived(snapshot: Snapshot) -> Iterator[FoundFault]:
    if snapshot.settings.derived_resources is None:
        return
    fix = f"ignoredResourceGroups: [{names.DERIVED_GROUP}] under NodeResourcesFit of each of its profiles; {_PAGE}"
    for each in snapshot.schedulers:
        for profile in _profiles(each.configuration) if each.configuration is not None else ():
            if names.DERIVED_GROUP not in _ignored(profile):
                name = profile.get("schedulerName", names.DEFAULT_SCHEDULER)
                yield FoundFault(f"pod {each.pod}", f"profile {name} does not ignore {names.DERIVED_GROUP}", fix)
    waiting = {each.title for each in snapshot.pods if not each.node}
    if short := [title for title in snapshot.short_of_derived if title in waiting]:
        yield FoundFault(f"{several(short, 'pod')}", f"its scheduler reports Insufficient {names.DERIVED_GROUP}", fix)


def _profiles(configuration: Object) -> list[Object]:
    found = configuration.get("profiles") or [{}]
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _ignored(profile: Object) -> list[str]:
    plugins = [each for each in profile.get("pluginConfig") or () if each.get("name") == "NodeResourcesFit"]
    return [group for each in plugins for group in (each.get("args") or {}).get("ignoredResourceGroups") or ()]


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
        "scheduler-without-extender",
        BROKEN,
        "kube-scheduler reads a configuration with Halfcard's extender",
        "Otherwise pods are bound by counts, and no card is chosen or recorded. The doctor sees schedulers that run as"
        " pods with the label `component: kube-scheduler`, and files that come from a ConfigMap.",
        _unconfigured,
    ),
    Check(
        "scheduler-misconfigured",
        WARNING,
        "the scheduler's extender binds, is not ignorable, is verified by a CA if it is called over HTTPS, and manages"
        " every GPU resource that nodes offer",
        "Otherwise pods bypass Halfcard and have no record, or another server answers in its place.",
        _misconfigured,
    ),
    Check(
        "scheduler-asks-derived",
        BROKEN,
        f"with `derived_resources`, every scheduler of GPU pods ignores the group {names.DERIVED_GROUP}",
        "No node offers these resources: a scheduler that does not ignore them finds no node for any GPU pod.",
        _asks_derived,
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
