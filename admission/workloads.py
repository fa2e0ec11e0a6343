"""Workloads: their pod template is judged when it is applied, not an hour later when a controller makes the pod.

Repairs touch only what people wrote; a template never gets a field that it did not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from halfcard.patches import Pointer
from halfcard.pod.requests import RequestingContainer, hints, read_pod
from halfcard.problems import Problem

from .repairs import NO_REPAIRS, RepairedPod, repair_template
from .review import judge, verdict
from .rules.subject import ReviewContext, Subject, subject
from .verdict import Verdict
from .writes import TEMPLATES, WorkloadWrite


def mutate_workload(write: WorkloadWrite, context: ReviewContext) -> Verdict:
    judged = subject(write.template, context, write.old)
    written = _written_now(judged)
    return _review(write.kind, judged, repair_template(written), hints(written))


def validate_workload(write: WorkloadWrite, context: ReviewContext) -> Verdict:
    return _review(write.kind, subject(write.template, context, write.old))


def _written_now(judged: Subject) -> tuple[RequestingContainer, ...]:
    """Returns the amounts that this write changes: rewriting unchanged ones would roll out a workload that nobody
    changed.
    """
    if judged.old is None:
        return judged.asked
    before = {each.place.pointer: each.wish for each in read_pod(judged.old, judged.context.policy.dialects)}
    return tuple(each for each in judged.asked if before.get(each.place.pointer) != each.wish)


def _review(
    kind: str, judged: Subject, repairs: RepairedPod = NO_REPAIRS, mentioned: Iterable[Problem] = ()
) -> Verdict:
    root = TEMPLATES[kind]
    policy = judged.context.policy
    problems = [_under(problem, root) for problem in (*judge(judged), *mentioned)]
    changes = tuple(change.under(root) for change in repairs.changes)
    return verdict(problems, policy, RepairedPod(changes, repairs.notes), at_most=policy.templates)


def _under(problem: Problem, root: Pointer) -> Problem:
    return replace(problem, where=".".join((*map(str, root), problem.where)))
