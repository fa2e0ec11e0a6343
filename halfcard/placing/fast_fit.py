"""Decides whether a pod with one claim, as nearly all pods have, fits in a room, by totals that the room has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from ..claims import Claim, ContainerStage, Need
from ..pod.card_preferences import CardPreferences
from .card_usage import CardMode, is_closed, is_offered, mode_of, take, use_of
from .room import Room

FitCheck = Callable[[Room], bool]
"""Returns whether a claim fits, on a node with known time slices."""


def fits_alone(room: Room, need: Need, wanted: CardPreferences) -> bool:
    claim = need.claim
    if wanted.narrows and is_offered(claim, room.slices):
        allowed = [at for at in room.usable if wanted.allows(room.cards[at])]
        if len(allowed) < len(room.usable):
            return _places(room, claim, allowed) >= claim.cards
    return check_for(claim, room.slices)(room)


def check_for(claim: Claim, slices: str) -> FitCheck:
    """Returns a check whether a room has cards for a claim, which may be any of its cards."""
    cards, cores, mib = claim.cards, claim.cores_pct or 0, claim.memory_mib
    mode = mode_of(claim, slices)
    if not is_offered(claim, slices):
        return lambda _: False
    if mode is CardMode.EXCLUSIVE:
        return lambda room: room.counted.idle >= cards
    if mode is CardMode.HALVES:
        return lambda room: room.counted.halves >= cards
    if mode is CardMode.SLICES:
        return lambda room: room.counted.slices >= cards
    if mib is None:
        return lambda room: _places(room, claim, room.usable) >= cards
    if cards > 1:
        return lambda room: _count(room.counted.shares, cores, mib) >= cards
    return _look_for_one(cores, mib)


def check_for_one_card(needs: Iterable[Need], slices: str) -> FitCheck | None:
    """Returns a check whether containers that run together, each with a share of one card, fit on the same card.

    Returns None for containers that run at different times or have other claims.
    """
    cores = mib = 0
    for need in needs:
        claim = need.claim
        is_share = claim.cards == 1 and mode_of(claim, slices) is CardMode.SHARED
        if need.stage is not ContainerStage.APP or not is_share or claim.memory_mib is None:
            return None
        cores, mib = cores + (claim.cores_pct or 0), mib + claim.memory_mib
    return _look_for_one(cores, mib)


def _look_for_one(cores: int, mib: int) -> FitCheck:
    """Remembers answers by the largest free shares, in which few rooms differ."""
    fits = lru_cache(1024)(lambda largest: _count(largest, cores, mib) > 0)
    return lambda room: fits(room.counted.largest)


def _count(shares: Iterable[tuple[int, int]], cores: int, mib: int) -> int:
    return len([True for free, free_mib in shares if cores <= free and mib <= free_mib])


def _places(room: Room, claim: Claim, positions: Iterable[int]) -> int:
    """Counts the places of a claim on these cards: one on each, and several where it is a time slice."""
    found, mode = 0, mode_of(claim, room.slices)
    for at in positions:
        card = room.cards[at]
        if is_closed(card, mode):
            continue
        left = take(card, room.left[at], use_of(claim, card, room.slices))
        if left is not None:
            found += 1 + left.parts if left.mode is CardMode.SLICES else 1
    return found
