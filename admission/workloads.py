"""The decision on workloads: their pod template is judged when it is applied, not when a controller creates the pod.

Repairs change only fields that the template has; they never add one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from halfcard.patches import PatchOperation
from halfcard.pod.requests import RequestingContainer, hints, read_pod
from halfcard.problems import Problem

from .repairs import RepairedPod, repair_template
from .review import judge, verdict_of
from .rules.subject import ReviewContext, Subject, subject
from .verdict import Verdict
from .writes import WorkloadWrite, WrittenTemplate


def mutate_workload(write: WorkloadWrite, context: ReviewContext) -> Verdict:
    problems: list[Problem] = []
    changes: list[PatchOperation] = []
    notes: list[str] = []
    for each in write.templates:
        judged = subject(each.pod, context, each.old)
        written = _changed_requests(judged)
        repairs = repair_template(written)
        problems += _placed(each, [*judge(judged), *hints(written)])
        changes += [change._replace(pointer=each.held.pointer(change.pointer)) for change in repairs.changes]
        notes += repairs.notes
    repaired = RepairedPod(tuple(changes), tuple(notes))
    return verdict_of(problems, context.policy, repaired, at_most=context.policy.templates)


def validate_workload(write: WorkloadWrite, context: ReviewContext) -> Verdict:
    problems = [problem for each in write.templates for problem in _problems(each, context)]
    return verdict_of(problems, context.policy, at_most=context.policy.templates)


def _problems(each: WrittenTemplate, context: ReviewContext) -> Iterator[Problem]:
    return _placed(each, judge(subject(each.pod, context, each.old)))


def _placed(each: WrittenTemplate, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yields problems of a pod as problems of the object that contains it."""
    return (replace(problem, where=each.held.path(problem.where)) for problem in problems)


def _changed_requests(judged: Subject) -> tuple[RequestingContainer, ...]:
    """Returns the requests that this write changes: a respelling of the others would roll out the workload again."""
    if judged.old is None:
        return judged.asked
    before = {each.place.pointer: each.request for each in read_pod(judged.old, judged.context.policy.dialects)}
    return tuple(each for each in judged.asked if before.get(each.place.pointer) != each.request)
