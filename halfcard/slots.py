"""Slots: a few device ids for containers whose resource has too many units to give each an id of its own.

Of such a resource the node publishes a total only, and kubelet hands out nothing that would tell which container is
starting. The ids of `halfcard.dev/slot` do. The law: no two containers of a pod ask for as many slots. Kubelet hands
the ids of an init container on to a later one, and then only their number tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import names
from .asks import Asked
from .quantity import InvalidQuantity, Quantity


def slots_due(asked: tuple[Asked, ...], slotted: frozenset[str]) -> Iterator[tuple[Asked, int]]:
    """Every container with the slots that it has to ask for: the first 1, the second 2; 0 for those without."""
    number = 0
    for each in asked:
        carries = not slotted.isdisjoint([ask.resource for ask in each.wish.asks if ask.amount])
        number += carries
        yield each, number if carries else 0


def written_slots(asked: Asked, side: str) -> str | None:
    amount = asked.amounts(side).get(names.SLOT)
    return None if amount is None else str(amount)


def says(text: str | None, slots: int) -> bool:
    """Does this spelling mean as many? Nothing at all means none."""
    if text is None:
        return not slots
    try:
        return Quantity.parse(text.strip()).as_int() == slots
    except InvalidQuantity:
        return False
