"""Could a container have its cards if it were alone in its pod? Nearly all are, and the room has counted already."""

from __future__ import annotations

from collections.abc import Iterable

from ..claims import Claim
from ..wanted import Wanted
from .demand import Need, Stage
from .room import Room
from .uses import Mode, mode_of, take, use_of


def fits_alone(room: Room, need: Need, wanted: Wanted) -> bool:
    claim = need.claim
    if wanted.narrows:
        allowed = [at for at in room.usable if wanted.allows(room.cards[at])]
        if len(allowed) < len(room.usable):
            return _places(room, claim, allowed) >= claim.cards
    mode = mode_of(claim, room.slices)
    if mode is Mode.EXCLUSIVE:
        return room.counted.idle >= claim.cards
    if mode is Mode.HALVES:
        return room.counted.halves >= claim.cards
    if mode is Mode.SLICES:
        return room.counted.slices >= claim.cards
    if claim.memory_mib is None:
        return _places(room, claim, room.usable) >= claim.cards
    if claim.cards > 1:
        return _count(room.counted.shares, claim.cores_pct or 0, claim.memory_mib) >= claim.cards
    return _count(room.counted.largest, claim.cores_pct or 0, claim.memory_mib) > 0


def fit_on_one_card(room: Room, needs: Iterable[Need], wanted: Wanted) -> bool:
    """Would containers that run together, each with a share of one card, find all of them on the same card?"""
    cores = mib = 0
    for stage, _, claim in needs:
        is_share = claim.cards == 1 and mode_of(claim, room.slices) is Mode.SHARED
        if stage is not Stage.APP or not is_share or claim.memory_mib is None or wanted.narrows:
            return False
        cores, mib = cores + (claim.cores_pct or 0), mib + claim.memory_mib
    return _count(room.counted.largest, cores, mib) > 0


def _count(shares: Iterable[tuple[int, int]], cores: int, mib: int) -> int:
    return len([True for free, free_mib in shares if cores <= free and mib <= free_mib])


def _places(room: Room, claim: Claim, positions: Iterable[int]) -> int:
    """How many of its cards could be among these: each once, but for time slices."""
    found = 0
    for at in positions:
        card = room.cards[at]
        left = take(card, room.left[at], use_of(claim, card, room.slices))
        if left is not None:
            found += 1 + left.parts if left.mode is Mode.SLICES else 1
    return found
