"""Slots: a few device ids for containers whose resource has too many units to give each an id of its own.

Of such a resource the node publishes a total only, and kubelet hands out nothing that would tell which container is
starting. The ids of `halfcard.dev/slot` do. The law: no two containers of a pod ask for as many slots. Kubelet hands
the ids of an init container on to a later one, and then only their number tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from .asks import Asked


def slots_due(asked: tuple[Asked, ...], slotted: frozenset[str]) -> Iterator[tuple[Asked, int]]:
    """Every container with the slots that it has to ask for: the first 1, the second 2; 0 for those without."""
    number = 0
    for each in asked:
        carries = not slotted.isdisjoint([ask.resource for ask in each.wish.asks if ask.amount])
        number += carries
        yield each, number if carries else 0
