"""Checks that a scheduler tries the pods that request cards: a pod that no scheduler tries has no Event of one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from admission.policy_settings import policy_of
from halfcard.problems import printable

from ..finding import BROKEN, WARNING, Check, FoundFault, several
from ..snapshot import Snapshot


def _untried(snapshot: Snapshot, *, is_served: bool) -> Iterator[FoundFault]:
    ours = policy_of(snapshot.settings).schedulers
    waiting: dict[str, list[str]] = {}
    for pod in snapshot.pods:
        if pod.asks and pod.is_untried and (pod.scheduler in ours) == is_served:
            waiting.setdefault(pod.scheduler, []).append(pod.title)
    fix = "start it, or read in its log why it tries no pod" if is_served else _start_or_rename(ours)
    for scheduler, titles in sorted(waiting.items()):
        yield FoundFault(f"scheduler {printable(scheduler)}", f"it has not tried {several(titles, 'pod')}", fix)


def _start_or_rename(ours: Iterable[str]) -> str:
    return f"start it; or create the pods again with `schedulerName: {'` or `'.join(sorted(ours))}`"


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "scheduler-silent",
        BROKEN,
        "a scheduler of the setting `schedulers` tries each new pod within 60 seconds",
        "Otherwise it does not run, and its pods wait without an Event. Pods with a scheduling gate do not count.",
        partial(_untried, is_served=True),
    ),
    Check(
        "scheduler-absent",
        WARNING,
        "a pod that requests cards names a scheduler that runs",
        "Otherwise it waits forever. Its Event `NoScheduler` is Halfcard's.",
        partial(_untried, is_served=False),
    ),
)
