"""Checks Halfcard's own pods and settings, and reports what could not be read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from halfcard import names

from .finding import BROKEN, NOTE, WARNING, Check, FoundFault, several
from .snapshot import Snapshot

_STARTS_WITHIN: Final = timedelta(minutes=2)
_PROCESSES: Final = frozenset(
    {names.ADMISSION_SERVICE, names.EXTENDER_SERVICE, names.QUOTA_SERVICE, names.CERTS_SERVICE, names.AGENT}
)
_MAP: Final = f"ConfigMap {names.NAMESPACE}/{names.SETTINGS_MAP}"


def _unready(snapshot: Snapshot) -> Iterator[FoundFault]:
    for pod in snapshot.own_pods:
        if not pod.is_ready and snapshot.now - pod.since > _STARTS_WITHIN:
            got = f"not ready since {pod.since:%Y-%m-%dT%H:%M:%SZ}" + (f", on node {pod.node}" if pod.node else "")
            command = f"kubectl -n {names.NAMESPACE} describe pod {pod.name}"
            yield FoundFault(f"pod {names.NAMESPACE}/{pod.name}", got, "read its events and its log", command)


def _unusable(snapshot: Snapshot) -> Iterator[FoundFault]:
    if snapshot.settings_problem:
        yield FoundFault(
            _MAP,
            snapshot.settings_problem,
            "correct it: no process of Halfcard starts with it, but for agents that kept earlier ones",
        )


def _different(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Compares the settings of workloads that mount them; other ways to pass the file are invisible."""
    for each in snapshot.workloads:
        is_ours = each.namespace == names.NAMESPACE and each.account in _PROCESSES
        if is_ours and each.config_maps and names.SETTINGS_MAP not in each.config_maps:
            fix = f"let all of Halfcard's processes mount ConfigMap {names.SETTINGS_MAP}"
            yield FoundFault(str(each), f"mounts {', '.join(each.config_maps)}", fix)


def _outdated(snapshot: Snapshot) -> Iterator[FoundFault]:
    changed = snapshot.settings_changed
    if changed is None:
        return
    old = [pod.name for pod in snapshot.own_pods if pod.account in _PROCESSES and pod.started < changed]
    if old:
        got = f"{several(old, 'pod')} started before the settings were changed at {changed:%Y-%m-%dT%H:%M:%SZ}"
        command = f"kubectl -n {names.NAMESPACE} rollout restart deployment,daemonset"
        yield FoundFault(_MAP, got, "restart them: settings are read only at the start", command)


def _unread(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each in snapshot.unread:
        yield FoundFault(each.what, each.why, "run the doctor as a user who may read it, from a place that reaches it")


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "process-not-ready",
        BROKEN,
        "a pod of Halfcard is ready within two minutes",
        "Otherwise its task is not done.",
        _unready,
    ),
    Check(
        "settings-unusable",
        BROKEN,
        "the settings in the cluster can be read",
        "A process that restarts does not come up; an agent continues with the last usable settings.",
        _unusable,
    ),
    Check(
        "settings-differ",
        WARNING,
        "all processes of an installation have one settings file",
        "Otherwise the processes use different rules: the extender may not be able to place what the webhook admits.",
        _different,
    ),
    Check(
        "settings-outdated",
        WARNING,
        "every process has read the current settings",
        "As above.",
        _outdated,
    ),
    Check(
        "not-looked-at",
        NOTE,
        "everything can be read",
        "What cannot be read is not checked.",
        _unread,
    ),
)
