"""The decision on workloads: their pod template is judged when it is applied, not when a controller creates the pod.

Repairs change only fields that the template has; they never add one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from halfcard.patches import Pointer
from halfcard.pod.requests import RequestingContainer, hints, read_pod
from halfcard.problems import Problem

from .repairs import NO_REPAIRS, RepairedPod, repair_template
from .review import judge, verdict_of
from .rules.subject import ReviewContext, Subject, subject
from .verdict import Verdict
from .writes import TEMPLATES, WorkloadWrite


def mutate_workload(write: WorkloadWrite, context: ReviewContext) -> Verdict:
    judged = subject(write.template, context, write.old)
    written = _changed_requests(judged)
    return _review(write.kind, judged, repair_template(written), hints(written))


def validate_workload(write: WorkloadWrite, context: ReviewContext) -> Verdict:
    return _review(write.kind, subject(write.template, context, write.old))


def _changed_requests(judged: Subject) -> tuple[RequestingContainer, ...]:
    """Returns the requests that this write changes: a respelling of the others would roll out the workload again."""
    if judged.old is None:
        return judged.asked
    before = {each.place.pointer: each.request for each in read_pod(judged.old, judged.context.policy.dialects)}
    return tuple(each for each in judged.asked if before.get(each.place.pointer) != each.request)


def _review(
    kind: str, judged: Subject, repairs: RepairedPod = NO_REPAIRS, mentioned: Iterable[Problem] = ()
) -> Verdict:
    root = TEMPLATES[kind]
    policy = judged.context.policy
    problems = [_under(problem, root) for problem in (*judge(judged), *mentioned)]
    changes = tuple(change.under(root) for change in repairs.changes)
    return verdict_of(problems, policy, RepairedPod(changes, repairs.notes), at_most=policy.templates)


def _under(problem: Problem, root: Pointer) -> Problem:
    return replace(problem, where=".".join((*map(str, root), problem.where)))
