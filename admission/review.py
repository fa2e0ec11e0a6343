"""The decision: one pod in, one verdict out. Pure; everything it depends on is an argument.

Mutating: repair, and refuse at once what cannot be repaired, because Kubernetes' own validation comes next and would
report one mistake at a time in its own words. Validating: the same rules for what will be stored, because the mutating
webhook may have been down or another one may have changed the pod. An update is judged only by what it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from halfcard.pod.requests import hints, read_pod
from halfcard.pod.spec import Pod
from halfcard.problems import Problem, Severity, as_warning, warning

from .policy import AdmissionPolicy
from .repairs import NO_REPAIRS, RepairedPod, hide_from_added, repair_pod, restore
from .rules import escapes, foreign_requests, host_paths, requests, variables
from .rules.core_limit import without_our_default
from .rules.subject import ReviewContext, Subject, subject
from .verdict import Verdict

Rule = Callable[[Subject], Iterator[Problem]]

RULES: Final[tuple[Rule, ...]] = (
    requests.amounts_are_valid,
    requests.units_are_repaired,
    requests.added_resources_are_due,
    requests.devices_are_counted,
    requests.memory_fits_a_card,
    requests.a_node_has_the_cards,
    requests.core_limit_is_valid,
    requests.policy_is_known,
    requests.node_is_not_chosen,
    requests.scheduler_is_served,
    requests.gate_is_not_removed,
    foreign_requests.foreign_requests_are_named,
    foreign_requests.requests_are_in_containers,
    escapes.records_are_not_forged,
    variables.variables_are_allowed,
    variables.cards_are_hidden,
    escapes.devices_are_not_listed,
    escapes.mounts_are_allowed,
    host_paths.host_paths_are_allowed,
    escapes.privileges_are_allowed,
)


def mutate_pod(pod: Pod, context: ReviewContext, *, old: Pod | None = None, subresource: str = "") -> Verdict:
    proposed = subject(pod, context, old)
    written = without_our_default(pod)
    problems = judge(proposed if written is pod else proposed._replace(pod=written))
    if old is None:
        return verdict_of([*problems, *hints(proposed.asked)], context.policy, repair_pod(proposed))
    if subresource == "ephemeralcontainers":
        repairs = hide_from_added(proposed, old)
    else:
        repairs = restore(proposed, read_pod(old, context.policy.dialects))
    return verdict_of(problems, context.policy, repairs)


def validate_pod(pod: Pod, context: ReviewContext, *, old: Pod | None = None) -> Verdict:
    return verdict_of(judge(subject(pod, context, old)), context.policy)


def judge(judged: Subject) -> list[Problem]:
    """Returns the problems of the pod; of an updated pod, only those that it did not have before."""
    problems = [problem for rule in RULES for problem in rule(judged)]
    if judged.old is None or not problems:
        return problems
    known = {problem for rule in RULES for problem in rule(subject(judged.old, judged.context, judged.old))}
    return [problem for problem in problems if problem not in known]


def verdict_of(
    problems: list[Problem],
    policy: AdmissionPolicy,
    repairs: RepairedPod = NO_REPAIRS,
    *,
    at_most: Severity = Severity.DENY,
) -> Verdict:
    """Sorts problems by the severities of the installation; `at_most` is the most severe that counts."""
    if not problems:
        return Verdict((), tuple([warning(note) for note in repairs.notes]), repairs.changes)
    denied = [each for each in problems if policy.severity(each) is Severity.DENY]
    warned = [each for each in problems if policy.severity(each) is Severity.WARN]
    if at_most is not Severity.DENY:
        denied, warned = [], denied + warned if at_most is Severity.WARN else []
    mentioned = tuple(dict.fromkeys(as_warning(each) for each in warned))
    if denied:
        return Verdict(tuple(denied), mentioned)
    return Verdict((), (*map(warning, repairs.notes), *mentioned), repairs.changes)
