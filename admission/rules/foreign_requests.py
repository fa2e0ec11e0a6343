"""The rule about requests that other systems read, and no dialect."""

from __future__ import annotations

from collections.abc import Iterator

from halfcard.pod.foreign_requests import ANNOTATIONS, fix_of_resource
from halfcard.pod.requests import LIMITS, REQUESTS
from halfcard.problems import FOREIGN, Problem

from .subject import Subject


def foreign_requests_are_named(subject: Subject) -> Iterator[Problem]:
    """Names each resource once, because the API server copies limits into requests."""
    fixes = {resource: fix for resource in subject.resources if (fix := fix_of_resource(resource))}
    for place, _ in subject.asked if fixes else ():
        sides = {REQUESTS: place.container.requests, LIMITS: place.container.limits}
        found = {resource: (side, amount) for side, amounts in sides.items() for resource, amount in amounts.items()}
        for resource, (side, amount) in found.items():
            if resource in fixes:
                yield FOREIGN.broken(f'{place.where}.resources.{side}["{resource}"]', amount, fixes[resource])
    for row in ANNOTATIONS:
        if row.name in subject.pod.annotations:
            yield FOREIGN.broken(f"metadata.annotations.{row.name}", subject.pod.annotations[row.name], row.fix)
