"""What a node offers of each resource: what its live pods hold of it, and what it could take now, card by card.

A card that is locked to one way of sharing is missing from the others' totals until it is free again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from .. import names
from ..cards import Card
from ..claims import UNIT_MIB, WHOLE_CARD
from .card_usage import HALVES, CardMode, CardRoom
from .room import Room

Offer = Callable[[Card, CardRoom], int]

_SHARABLE: Final = (CardMode.FREE, CardMode.SHARED)


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


def servable(prefixes: Iterable[str]) -> frozenset[str]:
    """What a node's agent may be told to offer; cards' count and renamed time slices come with what they belong to."""
    return frozenset(offers(prefixes, 1))


def counted_in_mib(resource: str, aliyun_unit_mib: int) -> bool:
    """Such totals only stand in the node's status: kubelet cannot keep a device id for each."""
    return resource == names.VOLCANO_GPU_MEMORY or (resource == names.ALIYUN_GPU_MEM and aliyun_unit_mib == 1)


def totals(room: Room, held: Iterable[Mapping[str, int]], table: Mapping[str, Offer]) -> dict[str, int]:
    """For each resource of the table, and time slices; `held` is what each live pod on the node asks for."""
    sold = {**table, room.slices: _slices} if room.slices else table
    could = {resource: _sum_over(room, offer) for resource, offer in sold.items()}
    for asks in held:
        for resource, amount in asks.items():
            if resource in could:
                could[resource] += amount
    return could


def slots(room: Room, held: int, split: int) -> int:
    """Of nvidia.com/gpu where a card is offered to `split` containers, whose memory and cores are counted elsewhere.

    Nobody knows which cards the `held` ones lie on. Those that may be on cards which take nothing more are added: too
    many mislead nobody, since cards are counted where pods are placed; too few would have kubelet turn away a pod.
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


def _cores(_card: Card, left: CardRoom) -> int:
    return WHOLE_CARD if left.mode is CardMode.FREE else left.cores * (left.mode is CardMode.SHARED)


def _memory_in(unit_mib: int) -> Offer:
    def offer(_card: Card, left: CardRoom) -> int:
        return left.mib // unit_mib if left.mode in _SHARABLE else 0

    return offer
