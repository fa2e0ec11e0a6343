"""Finds layouts of a demand on the cards of a node: whether one exists, and the one that leaves the most.

Invariant: a layout exists exactly when one is found. Containers whose device ids the node cannot tell apart get the
same cards; the cards of one container are different ones, except for time slices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from .card_usage import CardMode, CardUse, mode_of, use_of
from .demand import Demand
from .fast_fit import FitCheck, check_for, check_for_one_card, fits_alone
from .pod_usage import NOTHING_HELD, PodUsage, added
from .room import Room
from .search import Layout, Rate, Search

__all__ = ["Layout", "Rate", "RatedLayout", "best", "fits", "fits_where", "peaks"]


class RatedLayout(NamedTuple):
    """A layout, and the room after it."""

    layout: Layout
    room: Room
    uses: Mapping[int, CardUse]
    """What the pod uses of each card, by the card's position."""


def fits(room: Room, demand: Demand) -> bool:
    """Returns whether a layout exists; for nearly all pods, which have one claim, totals of the room decide."""
    needs, wanted = demand.needs, demand.wanted
    if len(needs) == 1:
        return fits_alone(room, needs[0], wanted)
    on_one_card = None if wanted.narrows else check_for_one_card(needs, room.slices)
    if on_one_card is not None and on_one_card(room):
        return True
    return all(fits_alone(room, need, wanted) for need in needs) and Search(room, demand).first() is not None


def fits_where(demand: Demand, slices: str) -> FitCheck:
    """Returns `fits` for rooms of nodes that offer these slices; what depends on the demand alone is done once."""
    needs = demand.needs
    if len(needs) == 1 and not demand.wanted.narrows:
        return check_for(needs[0].claim, slices)
    on_one_card = None if demand.wanted.narrows else check_for_one_card(needs, slices)
    if on_one_card is None:
        return lambda room: fits(room, demand)
    return lambda room: on_one_card(room) or fits(room, demand)


def best(room: Room, demand: Demand, rate: Rate) -> RatedLayout | None:
    """Finds the layout that rates best, container by container; of equal ones, that with the first cards."""
    if not fits(room, demand):
        return None
    found = Search(room, demand, rate).first() or Search(room, demand).first()
    if found is None:
        return None
    left = room.after(found.left, cpu_milli=demand.cpu_milli, memory_mib=demand.memory_mib)
    return RatedLayout(found.layout, left, _peaks(found.held))


def peaks(room: Room, demand: Demand, layout: Layout) -> dict[int, CardUse] | None:
    """Returns what a pod uses of each card in this layout, whether or not the room suffices; None for an invalid
    layout.
    """
    held: dict[int, PodUsage] = {}
    for need, positions in zip(demand.needs, layout, strict=True):
        for at, times in Counter(positions).items():
            if times > 1 and mode_of(need.claim, room.slices) is not CardMode.SLICES:
                return None
            use = use_of(need.claim, room.cards[at], room.slices, times)
            more = added(held.get(at, NOTHING_HELD), need, use)
            if more is None:
                return None
            held[at] = more
    return _peaks(held)


def _peaks(held: Mapping[int, PodUsage]) -> dict[int, CardUse]:
    return {at: peak for at, each in held.items() if (peak := each.whole or each.part)}
