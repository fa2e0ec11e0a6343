"""The rules about requests that no dialect reads: of other systems, misspelled, or where Kubernetes allows no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from halfcard.pod.foreign_requests import ANNOTATIONS, fix_of_resource
from halfcard.pod.requests import LIMITS, REQUESTS
from halfcard.pod.spec import Resources, ephemeral_places
from halfcard.problems import FOREIGN, Problem

from .subject import Subject

_ELSEWHERE: Final = "ask for it in a container; Kubernetes refuses it here"


class _Written(NamedTuple):
    field: str
    resource: str
    amount: str | int | float


def foreign_requests_are_named(subject: Subject) -> Iterator[Problem]:
    fixes = {resource: fix for resource in subject.resources if (fix := fix_of_resource(resource))}
    for place, _ in subject.asked if fixes else ():
        for each in _written(place.where, place.container.resources):
            if each.resource in fixes:
                yield FOREIGN.broken(each.field, each.amount, fixes[each.resource])
    for row in ANNOTATIONS:
        if row.name in subject.pod.annotations:
            yield FOREIGN.broken(f"metadata.annotations.{row.name}", subject.pod.annotations[row.name], row.fix)


def requests_are_in_containers(subject: Subject) -> Iterator[Problem]:
    """Names GPUs that are requested for the whole pod, or by containers for debugging."""
    spec = subject.pod.spec
    if spec is None or (spec.resources is None and spec.ephemeral_containers is None):
        return
    known = subject.context.policy.dialects.resources
    containers = [(each.where, each.container.resources) for each in ephemeral_places(subject.pod)]
    for where, resources in (("spec", spec.resources), *containers):
        for each in _written(where, resources):
            if each.resource in known:
                yield FOREIGN.broken(each.field, each.amount, _ELSEWHERE)


def _written(where: str, resources: Resources | None) -> Iterator[_Written]:
    """Yields each resource once, because the API server copies limits into requests."""
    if resources is None:
        return
    sides = {REQUESTS: resources.requests or {}, LIMITS: resources.limits or {}}
    found = {resource: (side, amount) for side, amounts in sides.items() for resource, amount in amounts.items()}
    for resource, (side, amount) in found.items():
        yield _Written(f'{where}.resources.{side}["{resource}"]', resource, amount)
