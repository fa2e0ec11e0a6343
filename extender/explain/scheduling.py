"""Explains why a pending pod has no node in its scheduler's own words, and what keeps the scheduler from trying it.

Halfcard judges cards; selectors, taints, volumes and the CPU of nodes are known to the scheduler alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from halfcard import names
from halfcard.pod.reported_pod import ReportedPod

from ..scheduler_api.call_errors import read_error

_GATED: Final = "SchedulingGated"
_SECONDS: Final = len("2026-01-01T00:00:00")


@dataclass(frozen=True, slots=True)
class SchedulerReport:
    """What a scheduler said about a pod; `since` is when the reason began, or when it was last seen."""

    reason: str
    message: str
    since: str


@dataclass(frozen=True, slots=True)
class SchedulerTraces:
    """What shows that a scheduler of a name runs; nothing was looked for if all is as by default.

    Attributes:
        placed: how many other pods with its name have a node.
        has_events: whether there are events of it; None if that is unknown.
        lease_renewed: when kube-scheduler's Lease was last renewed; empty without a Lease, None if that is unknown.
    """

    placed: int = 0
    has_events: bool | None = None
    lease_renewed: str | None = None


NO_TRACES: Final = SchedulerTraces()


@dataclass(frozen=True, slots=True)
class Scheduling:
    """What a pending pod's scheduler does about it; the names of all fields are JSON keys.

    Attributes:
        obstacles: what keeps the scheduler from trying the pod, a sentence each.
        report: the scheduler's own words; None if it said nothing.
        remark: what follows from the words, or from their absence.
    """

    scheduler: str
    obstacles: tuple[str, ...] = ()
    report: SchedulerReport | None = None
    remark: str = ""

    @property
    def holds_back(self) -> bool:
        return bool(self.obstacles or self.report)

    @property
    def program(self) -> str:
        return "kube-scheduler" if self.scheduler == names.DEFAULT_SCHEDULER else f"scheduler {self.scheduler}"


def reported(pod: ReportedPod) -> SchedulerReport | None:
    """Reads the scheduler's words from the pod's condition; the API server's own about gates are none of them."""
    refusal = pod.refusal
    if refusal is None or refusal.reason == _GATED or not refusal.message:
        return None
    return SchedulerReport(refusal.reason or "", refusal.message, refusal.last_transition_time or "")


def explain_scheduling(
    pod: ReportedPod, served: Collection[str], report: SchedulerReport | None, traces: SchedulerTraces
) -> Scheduling:
    """Explains the scheduling of a pending pod.

    `served` are the schedulers that ask the extender; it is empty for a pod without claims, which any may place.
    """
    obstacles = [*_gates(pod), *_unserved(pod, served)]
    if report is not None:
        return Scheduling(pod.scheduler, tuple(obstacles), report, _meaning(report.message))
    if pod.gates:
        return Scheduling(pod.scheduler, tuple(obstacles))
    words = "" if traces == NO_TRACES else _untried(pod, traces)
    if _is_gone(pod, traces):
        return Scheduling(pod.scheduler, (*obstacles, f"{words} Does it run?"))
    return Scheduling(pod.scheduler, tuple(obstacles), None, words)


def _gates(pod: ReportedPod) -> Iterator[str]:
    for gate in pod.gates:
        if gate == names.QUOTA_GATE:
            command = f"halfcard quota explain {pod.meta.namespace}"
            yield f"It waits for its quotas, with the scheduling gate {gate}: {command}"
        else:
            yield f"No scheduler tries it until its scheduling gate {gate} is removed by the program that set it."


def _unserved(pod: ReportedPod, served: Collection[str]) -> Iterator[str]:
    if served and pod.scheduler not in served:
        ours = ", ".join(sorted(served))
        yield f'Halfcard does not serve its scheduler: got "{pod.scheduler}", and the setting schedulers has {ours}.'


def _meaning(message: str) -> str:
    error = read_error(message)
    return f"kube-scheduler's call to Halfcard's extender failed: {error.fix}" if error else ""


def _untried(pod: ReportedPod, traces: SchedulerTraces) -> str:
    created = f" since {pod.meta.creation_timestamp}" if pod.meta.creation_timestamp else ""
    return f'No scheduler has tried it{created}. What is known of "{pod.scheduler}": {", ".join(_known(pod, traces))}.'


def _known(pod: ReportedPod, traces: SchedulerTraces) -> Iterator[str]:
    yield f"{traces.placed or 'no'} other pod{'' if traces.placed == 1 else 's'} of it on nodes"
    yield {True: "it has written events", False: "no events", None: "events unknown"}[traces.has_events]
    if pod.scheduler == names.DEFAULT_SCHEDULER and traces.lease_renewed is not None:
        yield f"its Lease was renewed at {traces.lease_renewed}" if traces.lease_renewed else "no Lease"


def _is_gone(pod: ReportedPod, traces: SchedulerTraces) -> bool:
    """Returns whether nothing shows the scheduler, or its Lease is older than the pod."""
    if traces.lease_renewed and pod.scheduler == names.DEFAULT_SCHEDULER:
        return traces.lease_renewed[:_SECONDS] < (pod.meta.creation_timestamp or "")[:_SECONDS]
    return traces.has_events is False and not traces.placed
