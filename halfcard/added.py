"""Resources that only Halfcard asks for: what each container is to have of them, and what stands there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from . import names
from .asks import LIMITS, REQUESTS, Asked
from .derived import Derived, derived_due
from .pods import Pod
from .quantity import InvalidQuantity, Quantity
from .slots import slots_due

_GROUP: Final = f"{names.DERIVED_GROUP}/"


class Added(NamedTuple):
    """How much of a resource a container has to ask for; 0 where it must not name it."""

    asked: Asked
    resource: str
    due: int


def added(pod: Pod, asked: tuple[Asked, ...], slotted: frozenset[str], derived: Derived | None) -> Iterator[Added]:
    """Of every container its slots, and what quotas count by; also what it has no reason to name."""
    for each, slots, counts in zip(asked, slots_due(asked, slotted), derived_due(pod, asked, derived), strict=True):
        due = {names.SLOT: slots, **counts} if slots else counts
        for resource in sorted(named_by(each).union(due)):
            yield Added(each, resource, due.get(resource, 0))


def named_by(asked: Asked) -> set[str]:
    """Those that stand there, on either side."""
    resources = (*asked.amounts(LIMITS), *asked.amounts(REQUESTS))
    return {resource for resource in resources if resource == names.SLOT or resource.startswith(_GROUP)}


def written(asked: Asked, side: str, resource: str) -> str | None:
    amount = asked.amounts(side).get(resource)
    return None if amount is None else str(amount)


def says(text: str | None, due: int) -> bool:
    """Does this spelling mean as much? Nothing at all means none."""
    if text is None:
        return not due
    try:
        return Quantity.parse(text.strip()).as_int() == due
    except InvalidQuantity:
        return False
