"""Computes the resources that only Halfcard adds to requests, and reads those that a container has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from . import names
from .pod.requests import LIMITS, REQUESTS, RequestingContainer
from .pod.slot_resources import slots_due
from .pod.spec import Pod
from .quantity import InvalidQuantity, Quantity
from .quota.derived_resources import DerivedSettings, derived_due

_GROUP: Final = f"{names.DERIVED_GROUP}/"


class AddedResources(NamedTuple):
    """An amount that a container must request of a resource; 0 where it must not name the resource."""

    asked: RequestingContainer
    resource: str
    due: int


def added(
    pod: Pod, asked: tuple[RequestingContainer, ...], slotted: frozenset[str], derived: DerivedSettings | None
) -> Iterator[AddedResources]:
    """Returns the resources that each container must request: its slots, and the resources that quotas count.

    A resource with amount 0 must not be requested by that container.
    """
    for each, slots, counts in zip(asked, slots_due(asked, slotted), derived_due(pod, asked, derived), strict=True):
        due = {names.SLOT: slots, **counts} if slots else counts
        for resource in sorted(named_by(each).union(due)):
            yield AddedResources(each, resource, due.get(resource, 0))


def named_by(asked: RequestingContainer) -> set[str]:
    """Names the added resources that the container lists, in requests or in limits."""
    resources = (*asked.amounts(LIMITS), *asked.amounts(REQUESTS))
    return {resource for resource in resources if is_added(resource)}


def is_added(resource: str) -> bool:
    """Returns whether only Halfcard adds this resource."""
    return resource == names.SLOT or resource.startswith(_GROUP)


def written(asked: RequestingContainer, side: str, resource: str) -> str | None:
    amount = asked.amounts(side).get(resource)
    return None if amount is None else str(amount)


def says(text: str | None, due: int) -> bool:
    """Returns whether the text is this amount; a missing text is 0."""
    if text is None:
        return not due
    try:
        return Quantity.parse(text.strip()).as_int() == due
    except InvalidQuantity:
        return False
