"""Slots: a few device ids for containers whose resource has too many units to give each an id of its own.

Of such a resource the node publishes a total only, and kubelet hands out nothing that would tell which container is
starting. The ids of `halfcard.dev/slot` do. The law: no two containers of a pod ask for as many slots. Kubelet hands
the ids of an init container on to a later one, and then only their number tells the two apart.
"""

from __future__ import annotations

from itertools import accumulate

from .requests import RequestingContainer


def slots_due(asked: tuple[RequestingContainer, ...], slotted: frozenset[str]) -> list[int]:
    """How many each container has to ask for: the first 1, the second 2; 0 for those without."""
    if not slotted:
        return [0] * len(asked)
    carry = [int(not slotted.isdisjoint([ask.resource for ask in each.wish.asks if ask.amount])) for each in asked]
    return [number * carries for number, carries in zip(accumulate(carry), carry, strict=True)]
