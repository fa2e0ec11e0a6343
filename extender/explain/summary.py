"""Summarizes a pending pod in one line: the first reason that is known, without a look at each card."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from halfcard.placing.pod_facts import read_facts
from halfcard.pod.reported_pod import ReportedPod

from ..state import State
from .scheduling import NO_TRACES, explain_scheduling, reported


@dataclass(frozen=True, slots=True)
class PendingSummary:
    """A pending pod and its first reason; the names of all fields are JSON keys."""

    pod: str
    created: str
    why: str


def summarize(pod: ReportedPod, state: State, served: Collection[str]) -> PendingSummary | None:
    """Returns None for a pod without claims."""
    facts = read_facts(pod, state.dialects)
    if not facts.asks_for_cards:
        return None
    found = explain_scheduling(pod, served, reported(pod), NO_TRACES)
    said = "" if found.report is None else found.report.message
    reasons = (facts.trouble, *found.obstacles, said, "no scheduler has tried it")
    return PendingSummary(facts.title, facts.created, next(filter(None, reasons)))
