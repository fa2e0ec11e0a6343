"""Workloads: their pod template is judged when it is applied, not an hour later when a controller makes the pod.

Repairs touch only what people wrote; a template never gets a field that it did not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from halfcard.patches import Pointer, value_at
from halfcard.pod.requests import RequestingContainer, hints, read_pod
from halfcard.pod.spec import Pod, PodMetadata
from halfcard.problems import Problem

from ..review import ALLOWED, Verdict, judge, verdict
from ..rules.subject import ReviewContext, Subject, subject
from .repairs import NO_REPAIRS, RepairedPod, repair_template

TEMPLATES: Final[Mapping[str, Pointer]] = {
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
}
"""Where each kind keeps its pod template."""


def mutate_workload(kind: str, obj: Any, around: ReviewContext, *, old: Any = None) -> Verdict:
    judged = _judged(kind, obj, around, old)
    if judged is None:
        return ALLOWED
    written = _written_now(judged)
    return _review(kind, judged, repair_template(written), hints(written))


def validate_workload(kind: str, obj: Any, around: ReviewContext, *, old: Any = None) -> Verdict:
    judged = _judged(kind, obj, around, old)
    return ALLOWED if judged is None else _review(kind, judged)


def _judged(kind: str, obj: Any, around: ReviewContext, old: Any) -> Subject | None:
    """Returns the subject to judge; None for objects of a controller: their owner was judged, and the controller
    cannot fix them.
    """
    metadata = msgspec.convert(value_at(obj, ("metadata",)), PodMetadata | None)
    if metadata is not None and metadata.has_controller:
        return None
    template = template_of(kind, obj)
    return subject(template, around, template_of(kind, old) if old is not None else None)


def template_of(kind: str, obj: Any) -> Pod:
    return msgspec.convert(value_at(obj, TEMPLATES[kind]) or {}, Pod)


def _written_now(judged: Subject) -> tuple[RequestingContainer, ...]:
    """Returns the amounts that this write changes: rewriting unchanged ones would roll out a workload that nobody
    changed.
    """
    if judged.old is None:
        return judged.asked
    before = {each.place.pointer: each.wish for each in read_pod(judged.old, judged.around.policy.dialects)}
    return tuple(each for each in judged.asked if before.get(each.place.pointer) != each.wish)


def _review(
    kind: str, judged: Subject, repairs: RepairedPod = NO_REPAIRS, mentioned: Iterable[Problem] = ()
) -> Verdict:
    root = TEMPLATES[kind]
    policy = judged.around.policy
    problems = [_under(problem, root) for problem in (*judge(judged), *mentioned)]
    changes = tuple(change.under(root) for change in repairs.changes)
    return verdict(problems, policy, RepairedPod(changes, repairs.notes), at_most=policy.templates)


def _under(problem: Problem, root: Pointer) -> Problem:
    return replace(problem, where=".".join((*map(str, root), problem.where)))
