"""Computes what one pod uses of one card, and what remains of the card.

Invariant: a card has one mode at a time. The first pod that takes a part of it locks the mode, and the last one that
ends frees it; no pod gets more than what remains.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from .. import names
from ..cards import Card
from ..claims import WHOLE_CARD, Claim, Part

HALVES: Final = 2


class CardMode(StrEnum):
    FREE = "free"
    SHARED = "shared"
    HALVES = "halves"
    SLICES = "slices"
    EXCLUSIVE = "exclusive"


LIMITED: Final = frozenset({CardMode.SHARED, CardMode.HALVES})
"""The modes in which a container has limits, to which it can be held."""


class CardUse(NamedTuple):
    """What one pod uses of one card; `parts` are halves or time slices."""

    mode: CardMode
    cores: int
    mib: int
    parts: int


class CardRoom(NamedTuple):
    """What remains of one card."""

    mode: CardMode
    cores: int
    mib: int
    parts: int


def untouched(card: Card) -> CardRoom:
    return CardRoom(CardMode.FREE, WHOLE_CARD, card.memory_mib or 0, 0)


def parts_of(card: Card, mode: CardMode) -> int:
    """Returns the number of equal parts of a card in this mode; 0 where it is not divided."""
    if mode is CardMode.HALVES:
        return HALVES
    return card.replicas if mode is CardMode.SLICES else 0


def worth(card: Card, use: CardUse) -> tuple[int, int]:
    """Returns cores and MiB of a use: half a card counts as half of both, a time slice as its part of them."""
    if parts := parts_of(card, use.mode):
        return WHOLE_CARD * use.parts // parts, (card.memory_mib or 0) * use.parts // parts
    return use.cores, use.mib


def use_of_card(card: Card, left: CardRoom) -> CardUse:
    """Returns what all pods together use of a card."""
    parts = parts_of(card, left.mode)
    return CardUse(
        left.mode, WHOLE_CARD - left.cores, (card.memory_mib or 0) - left.mib, parts - left.parts if parts else 0
    )


def mode_of(claim: Claim, slices: str) -> CardMode:
    """Returns how a claim uses cards; on a node that offers slices as nvidia.com/gpu, a whole card is a slice."""
    if claim.part is Part.HALF:
        return CardMode.HALVES
    if claim.part is Part.SLICE:
        return CardMode.SLICES
    if not claim.exclusive:
        return CardMode.SHARED
    is_slice = slices == names.NVIDIA_GPU and claim.dialect == "nvidia"
    return CardMode.SLICES if is_slice else CardMode.EXCLUSIVE


def is_offered(claim: Claim, slices: str) -> bool:
    """Returns False for a claim on time slices on a node that does not offer them under their own name."""
    return claim.part is not Part.SLICE or slices == names.NVIDIA_GPU_SHARED


def use_of(claim: Claim, card: Card, slices: str, times: int = 1) -> CardUse:
    """Returns what a claim uses of this card; `slices` is the resource of the node's time slices, `times` their
    number.
    """
    mode = mode_of(claim, slices)
    if mode is CardMode.SHARED:
        return CardUse(mode, claim.cores_pct or 0, _memory(claim, card.memory_mib or 0), 0)
    if mode is CardMode.EXCLUSIVE:
        return CardUse(mode, WHOLE_CARD, card.memory_mib or 0, 0)
    return CardUse(mode, 0, 0, times)


def _memory(claim: Claim, card_mib: int) -> int:
    """Returns the memory of a share in MiB: all of the card where it names none, since nothing would limit it."""
    if claim.memory_mib is not None:
        return claim.memory_mib
    return card_mib * (100 if claim.memory_pct is None else claim.memory_pct) // 100


def take(card: Card, left: CardRoom, use: CardUse) -> CardRoom | None:
    """Subtracts a use from what remains; None where it does not fit."""
    mode = use.mode
    if left.mode is CardMode.FREE:
        if mode is CardMode.SHARED and card.memory_mib is None:
            return None  # nothing could limit it
        parts = parts_of(card, mode)
    elif left.mode is not mode or mode is CardMode.EXCLUSIVE:
        return None
    else:
        parts = left.parts
    cores, mib, parts = left.cores - use.cores, left.mib - use.mib, parts - use.parts
    return None if cores < 0 or mib < 0 or parts < 0 else CardRoom(mode, cores, mib, parts)


def is_closed(card: Card, mode: CardMode) -> bool:
    """Returns whether nothing new may use a card in this mode."""
    return bool(card.why_not or (card.not_held and mode in LIMITED))


def give_back(left: CardRoom, use: CardUse) -> CardRoom:
    """Adds a use back that was subtracted, whatever was subtracted in between; the card stays locked."""
    return CardRoom(left.mode, left.cores + use.cores, left.mib + use.mib, left.parts + use.parts)


def is_whole(card: Card, left: CardRoom) -> bool:
    """Returns whether all of a locked card is free."""
    return left == CardRoom(left.mode, WHOLE_CARD, card.memory_mib or 0, parts_of(card, left.mode))


def use_at_once(one: CardUse, other: CardUse) -> CardUse | None:
    """Returns the use of two containers that run on one card at the same time; None where this is impossible."""
    if one.mode is not other.mode or one.mode is CardMode.EXCLUSIVE:
        return None
    return CardUse(one.mode, one.cores + other.cores, one.mib + other.mib, one.parts + other.parts)


def use_in_turn(one: CardUse, other: CardUse) -> CardUse | None:
    """Returns the use of two containers that run one after the other, which is the larger; None where modes differ."""
    if one.mode is not other.mode:
        return None
    return CardUse(one.mode, max(one.cores, other.cores), max(one.mib, other.mib), max(one.parts, other.parts))
