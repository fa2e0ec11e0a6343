"""Computes a node's total of each resource: what its live pods request, plus what it could take now, card by card.

A card that is locked to one mode is missing from the totals of other modes until it is free again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ..cards import Card
from ..claims import CARDS, CORES, MEMORY, WHOLE_CARD, Part, Unit
from ..dialects import Dialect
from .card_usage import HALVES, CardMode, CardRoom
from .room import Room

Offer = Callable[[Card, CardRoom], int]

_SHARABLE: Final = (CardMode.FREE, CardMode.SHARED)


def offers(dialects: Iterable[Dialect]) -> dict[str, Offer]:
    """Maps each resource that a node may publish to what a card could take of it."""
    return {resource: _offer(dialect.units[resource]) for dialect in dialects for resource in dialect.offered}


def totals(room: Room, held: Iterable[Mapping[str, int]], table: Mapping[str, Offer]) -> dict[str, int]:
    """Returns the totals for each resource of the table, and for slices; `held` is what each live pod requests."""
    sold = {**table, room.slices: _slices} if room.slices else table
    could = {resource: _sum_over(room, offer) for resource, offer in sold.items()}
    for asks in held:
        for resource, amount in asks.items():
            if resource in could:
                could[resource] += amount
    return could


def short_of(room: Room, asks: Mapping[str, int], table: Mapping[str, Offer]) -> dict[str, int]:
    """Returns the requested resources of the table of which a node's total has too little free, with what is free."""
    could = {resource: _sum_over(room, offer) for resource, offer in table.items() if resource in asks}
    return {resource: free for resource, free in could.items() if free < asks[resource]}


def slots(room: Room, held: int, split: int) -> int:
    """Counts nvidia.com/gpu where a card is offered to `split` containers and memory and cores are counted elsewhere.

    It is unknown on which cards the `held` ones are. Those that may be on full cards are added: too many do no harm,
    since placement counts cards; with too few, kubelet would reject a pod.
    """
    taking = sum(_takes_more(room.left[at]) for at in room.usable)
    closed = len(room.cards) - taking
    return max(held, taking * split + min(held, closed * split))


def _takes_more(left: CardRoom) -> bool:
    return left.mode is CardMode.FREE or (left.mode is CardMode.SHARED and left.mib > 0)


def _sum_over(room: Room, offer: Offer) -> int:
    return sum(offer(room.cards[at], room.left[at]) for at in room.usable)


def _whole(_card: Card, left: CardRoom) -> int:
    return int(left.mode is CardMode.FREE)


def _halves(_card: Card, left: CardRoom) -> int:
    return HALVES if left.mode is CardMode.FREE else left.parts * (left.mode is CardMode.HALVES)


def _slices(card: Card, left: CardRoom) -> int:
    return card.replicas if left.mode is CardMode.FREE else left.parts * (left.mode is CardMode.SLICES)


def _cores_in(unit_cores: int) -> Offer:
    return lambda _card, left: _cores(left) // unit_cores


def _cores(left: CardRoom) -> int:
    return WHOLE_CARD if left.mode is CardMode.FREE else left.cores * (left.mode is CardMode.SHARED)


def _offer(unit: Unit) -> Offer:
    if unit.part is not Part.AMOUNT:
        return _halves if unit.part is Part.HALF else _slices
    return {CARDS: _whole, CORES: _cores_in(unit.size), MEMORY: _memory_in(unit.size)}[unit.counted]


def _memory_in(unit_mib: int) -> Offer:
    return lambda _card, left: left.mib // unit_mib if left.mode in _SHARABLE else 0
