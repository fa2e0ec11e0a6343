"""Slots: a few device ids for containers whose resource has too many units to give each unit an id.

The node publishes only a total of such a resource, and kubelet passes no ids that identify the container that starts.
The ids of `halfcard.dev/slot` do. Invariant: no two containers of a pod request the same number of slots. kubelet
passes the ids of an init container on to a later container, and then only their number tells the two apart.
"""

from __future__ import annotations

from itertools import accumulate

from .requests import RequestingContainer


def slots_due(asked: tuple[RequestingContainer, ...], slotted: frozenset[str]) -> list[int]:
    """Returns how many slots each container must request: the first 1, the second 2; 0 where it needs none."""
    if not slotted:
        return [0] * len(asked)
    carry = [int(not slotted.isdisjoint([ask.resource for ask in each.request.asks if ask.amount])) for each in asked]
    return [number * carries for number, carries in zip(accumulate(carry), carry, strict=True)]
