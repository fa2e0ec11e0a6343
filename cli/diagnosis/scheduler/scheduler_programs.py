"""Checks of the kube-schedulers that run as pods: their versions, and their configurations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from admission.policy_settings import policy_of
from halfcard import names

from ..finding import BROKEN, WARNING, Check, FoundFault, several
from ..nodes.node_versions import minor_version
from ..snapshot import Object, Scheduler, Snapshot

_TAG: Final = re.compile(r":(?P<tag>[^/:@]+)(@.*)?$")

_OWN_IMAGE: Final = "Halfcard's own gets it by an upgrade of its release, if the value `scheduler.image.tag` is empty"

PAGE: Final = "start it with the configuration that `halfcard scheduler-config` prints (docs/scheduler.md)"


def _of_another_version(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Compares each scheduler's image, by its tag, with the API server."""
    server = minor_version(snapshot.api_server)
    for each in snapshot.schedulers:
        tag = _TAG.search(each.image)
        version = minor_version(tag["tag"]) if tag else None
        if server and version and not server.minor - 1 <= version.minor <= server.minor:
            got = f"it runs {each.image}; the API server is {snapshot.api_server}"
            yield FoundFault(f"pod {each.pod}", got, f"run kube-scheduler {server}; {_OWN_IMAGE}")


# --- configurations --------------------------------------------------------------------------------------------------


def _readable(snapshot: Snapshot) -> list[tuple[Scheduler, list[Object]]]:
    """Returns the schedulers of GPU pods with a readable configuration, and their extenders."""
    found = [(each, each.configuration) for each in _of_gpu_pods(snapshot) if each.configuration is not None]
    return [(each, _extenders(configuration)) for each, configuration in found]


def _of_gpu_pods(snapshot: Snapshot) -> list[Scheduler]:
    """Returns the schedulers with a profile that Halfcard serves; an unreadable configuration may have one."""
    served = policy_of(snapshot.settings).schedulers
    return [each for each in snapshot.schedulers if not served.isdisjoint(_names(each) or served)]


def _names(scheduler: Scheduler) -> set[str]:
    """Returns the names of its profiles; without a file it has the default one, and none are known of an unreadable
    file.
    """
    if scheduler.file and scheduler.configuration is None:
        return set()
    return {each.get("schedulerName") or names.DEFAULT_SCHEDULER for each in _profiles(scheduler.configuration or {})}


def _extenders(configuration: Object) -> list[Object]:
    """Reads the extenders of a configuration, whose content may be anything."""
    found = configuration.get("extenders")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _unconfigured(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each in _of_gpu_pods(snapshot):
        if not each.file:
            yield FoundFault(f"pod {each.pod}", "kube-scheduler runs without --config", PAGE)
    for each, extenders in _readable(snapshot):
        if not any(extender.get("filterVerb") for extender in extenders):
            yield FoundFault(f"pod {each.pod}", f"{each.file} names no extender", PAGE)


def unmanaged(snapshot: Snapshot) -> set[str]:
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
            yield FoundFault(f"pod {each.pod}", got, f"add it: pods that request it bypass Halfcard; {PAGE}")
        for extender in extenders:
            for got, fix in _flaws(extender):
                yield FoundFault(f"pod {each.pod}", f"the extender {got}", f"{fix}; {PAGE}")


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
    fix = f"ignoredResourceGroups: [{names.DERIVED_GROUP}] under NodeResourcesFit of each of its profiles; {PAGE}"
    served = policy_of(snapshot.settings).schedulers
    for each in snapshot.schedulers:
        for profile in _profiles(each.configuration) if each.configuration is not None else ():
            name = profile.get("schedulerName", names.DEFAULT_SCHEDULER)
            if name in served and names.DERIVED_GROUP not in _ignored(profile):
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
        "scheduler-version",
        WARNING,
        "kube-scheduler is of the API server's minor version, or of the one before",
        "Kubernetes supports no other: a newer scheduler may wait forever for what this API server does not have.",
        _of_another_version,
    ),
    Check(
        "scheduler-without-extender",
        BROKEN,
        "each kube-scheduler with a profile of the setting `schedulers` reads a configuration with Halfcard's extender",
        "Otherwise pods are bound by counts, and no card is chosen or recorded. The doctor sees Halfcard's own"
        " scheduler, those that run as pods with the label `component: kube-scheduler` or `component: scheduler`, and"
        " files that come from a ConfigMap.",
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
)
