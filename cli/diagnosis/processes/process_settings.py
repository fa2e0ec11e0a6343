"""Checks that the settings can be read, and that every process has read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halfcard import names

from ..causes import ELSEWHERE
from ..finding import BROKEN, WARNING, Check, FoundFault, several
from ..own_objects import PROCESSES, OwnPod
from ..presence import INSTALL
from ..snapshot import Snapshot

_MAP: Final = f"ConfigMap {names.NAMESPACE}/{names.SETTINGS_MAP}"
_EDIT: Final = f"kubectl -n {names.NAMESPACE} edit configmap {names.SETTINGS_MAP}"


def _unusable(snapshot: Snapshot) -> Iterator[FoundFault]:
    if snapshot.settings_problem:
        fix = (
            "correct it; if you use helm, in the chart's value `settings`, and upgrade with `--force-conflicts` if"
            " kubectl changed it since: no process of Halfcard starts with it, but for agents that kept earlier ones"
        )
        yield FoundFault(_MAP, snapshot.settings_problem, fix, _EDIT)
    mounts = any(each.is_ours and names.SETTINGS_MAP in each.config_maps for each in snapshot.workloads)
    if snapshot.settings_hash == "" and mounts:
        yield FoundFault(_MAP, "it does not exist, and Halfcard's processes mount it", "create it again", INSTALL)


def _different(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Compares the settings of workloads that mount them; other ways to pass the file are invisible."""
    for each in snapshot.workloads:
        if each.is_ours and each.config_maps and names.SETTINGS_MAP not in each.config_maps:
            fix = f"let all of Halfcard's processes mount ConfigMap {names.SETTINGS_MAP}"
            yield FoundFault(str(each), f"mounts {', '.join(each.config_maps)}", fix, about=each.account)


def _outdated(snapshot: Snapshot) -> Iterator[FoundFault]:
    old = [pod for pod in snapshot.own_pods if pod.account in PROCESSES and _has_old_settings(pod, snapshot)]
    if old:
        got = f"{several([pod.name for pod in old], 'pod')} started with other settings"
        command = f"kubectl -n {names.NAMESPACE} rollout restart {' '.join(sorted({_workload(pod) for pod in old}))}"
        yield FoundFault(_MAP, got, "restart them: settings are read only at the start", command)


def _has_old_settings(pod: OwnPod, snapshot: Snapshot) -> bool:
    """Compares contents: a pod was created with the settings of its hash, and reads newer ones when it starts."""
    if not snapshot.settings_hash or snapshot.settings_changed is None or pod.started >= snapshot.settings_changed:
        return False
    return pod.settings != snapshot.settings_hash


def _workload(pod: OwnPod) -> str:
    return f"{'daemonset' if pod.account == names.AGENT else 'deployment'}/{pod.account}"


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "settings-unusable",
        BROKEN,
        "the settings in the cluster can be read",
        "A process that restarts does not come up; an agent continues with the last usable settings.",
        _unusable,
        unless=ELSEWHERE,
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
        "As above. A pod has older settings if it started before their last change, and was created with others by the"
        " hash in its annotation.",
        _outdated,
        unless=("settings-unusable",),
    ),
)
