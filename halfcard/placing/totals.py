"""What a node offers of each resource: what its live pods hold of it, and what it could take now, card by card.

A card that is locked to one way of sharing is missing from the others' totals until it is free again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from .. import names
from ..cards import Card
from ..claims import UNIT_MIB, WHOLE_CARD
from .room import Room
from .uses import HALVES, Left, Mode

Offer = Callable[[Card, Left], int]

_SHARABLE: Final = (Mode.FREE, Mode.SHARED)


def offers(prefixes: Iterable[str], aliyun_unit_mib: int) -> dict[str, Offer]:
    """By resource, what a card could take of it; `prefixes` are the domains of gpu-manager's resources."""
    vcuda: dict[str, Offer] = {}
    for prefix in prefixes:
        vcuda[prefix + names.VCUDA_CORE_SUFFIX] = _cores
        vcuda[prefix + names.VCUDA_MEMORY_SUFFIX] = _memory_in(UNIT_MIB)
    return {
        **vcuda,
        names.TUYA_SGPU: _halves,
        names.ALIYUN_GPU_MEM: _memory_in(aliyun_unit_mib),
        names.VOLCANO_GPU_MEMORY: _memory_in(1),
        names.VOLCANO_GPU_NUMBER: _whole,
        names.NVIDIA_GPU: _whole,
    }


def totals(room: Room, held: Iterable[Mapping[str, int]], table: Mapping[str, Offer]) -> dict[str, int]:
    """For each resource of the table, and time slices; `held` is what each live pod on the node asks for."""
    sold = {**table, room.slices: _slices} if room.slices else table
    could = {resource: _sum_over(room, offer) for resource, offer in sold.items()}
    for asks in held:
        for resource, amount in asks.items():
            if resource in could:
                could[resource] += amount
    return could


def _sum_over(room: Room, offer: Offer) -> int:
    return sum(offer(room.cards[at], room.left[at]) for at in room.usable)


def _whole(_card: Card, left: Left) -> int:
    return int(left.mode is Mode.FREE)


def _halves(_card: Card, left: Left) -> int:
    return HALVES if left.mode is Mode.FREE else left.parts * (left.mode is Mode.HALVES)


def _slices(card: Card, left: Left) -> int:
    return card.replicas if left.mode is Mode.FREE else left.parts * (left.mode is Mode.SLICES)


def _cores(_card: Card, left: Left) -> int:
    return WHOLE_CARD if left.mode is Mode.FREE else left.cores * (left.mode is Mode.SHARED)


def _memory_in(unit_mib: int) -> Offer:
    def offer(_card: Card, left: Left) -> int:
        return left.mib // unit_mib if left.mode in _SHARABLE else 0

    return offer
