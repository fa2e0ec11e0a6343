"""Why a node, or one card of it, cannot take a demand: ten reasons, each one text for all nodes of a call.

Numbers of a node never appear: kube-scheduler counts equal texts and writes them into the pod.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from ..claims import Claim, Part
from .demand import Demand, Need
from .glance import fits_alone
from .room import Room
from .uses import Left, Mode, Use, mode_of, use_of


class Why(StrEnum):
    UNKNOWN = "Halfcard does not know this node"
    NO_CARDS = "no GPU"
    NOT_WANTED = "no card is among those that the pod asks for"
    OUT_OF_ORDER = "every card is out of order or cordoned"
    TOO_FEW = "too few cards are free"
    LOCKED = "every card is in use in another way"
    CORES = "too few cores"
    MEMORY = "too little memory"
    AT_ONCE = "too few cores or too little memory"
    TOGETHER = "no room for all its containers together"


def why_not(room: Room, demand: Demand) -> Why:
    """The one reason for a node that has no way to lay the demand."""
    if not room.cards:
        return Why.NO_CARDS
    if demand.wanted.narrows and not any(demand.wanted.allows(card) for card in room.cards):
        return Why.NOT_WANTED
    usable = [at for at in room.usable if not demand.wanted.narrows or demand.wanted.allows(room.cards[at])]
    if not usable:
        return Why.OUT_OF_ORDER
    for need in demand.needs:
        if not fits_alone(room, need, demand.wanted):
            return _single(room, need, usable)
    return Why.TOGETHER


def why_not_card(room: Room, at: int, need: Need, demand: Demand) -> Why | None:
    """The reason of one card; None where it would do for one card's worth of the need."""
    card = room.cards[at]
    if not demand.wanted.allows(card):
        return Why.NOT_WANTED
    if card.why_not:
        return Why.OUT_OF_ORDER
    use = use_of(need.claim, card, room.slices)
    return _short_of(use, room.left[at], card.memory_mib)


def _single(room: Room, need: Need, usable: list[int]) -> Why:
    if need.claim.cards > 1 or mode_of(need.claim, room.slices) is not Mode.SHARED:
        return Why.TOO_FEW
    reasons = [
        _short_of(use_of(need.claim, room.cards[at], room.slices), room.left[at], room.cards[at].memory_mib)
        for at in usable
    ]
    return _summed_up([reason for reason in reasons if reason is not None])


def _summed_up(reasons: Iterable[Why]) -> Why:
    """Cards that are locked do not count where another one is only too full."""
    open_ones = set(reasons) - {Why.LOCKED}
    if not open_ones:
        return Why.LOCKED
    return open_ones.pop() if len(open_ones) == 1 else Why.AT_ONCE


def _short_of(use: Use, left: Left, card_mib: int | None) -> Why | None:
    """As `uses.take` decides, in words."""
    if use.mode is Mode.EXCLUSIVE:
        return None if left.mode is Mode.FREE else Why.TOO_FEW
    if left.mode not in (Mode.FREE, use.mode):
        return Why.LOCKED
    if use.mode is not Mode.SHARED:
        return None if left.mode is Mode.FREE or left.parts >= use.parts else Why.TOO_FEW
    return _short_of_amounts(use, left, card_mib)


def _short_of_amounts(use: Use, left: Left, card_mib: int | None) -> Why | None:
    cores, memory = use.cores > left.cores, use.mib > left.mib or card_mib is None
    if cores and memory:
        return Why.AT_ONCE
    return Why.CORES if cores else Why.MEMORY if memory else None


def text(why: Why, demand: Demand) -> str:
    """The sentence for the scheduler, with the pod's numbers in it where all its containers ask for the same."""
    if why is Why.NOT_WANTED and demand.wanted.text:
        return f"no card is what the pod asks for ({demand.wanted.text})"
    claims = {need.claim for need in demand.needs}
    if len(claims) != 1:
        return str(why)
    (claim,) = claims
    match why:
        case Why.TOO_FEW:
            return _too_few(claim)
        case Why.CORES:
            return f"no card has {claim.cores_pct} % free"
        case Why.MEMORY:
            return f"no card has {_memory(claim)} free"
        case Why.AT_ONCE:
            return f"no card has {_amounts(claim)} free at once"
    return str(why)


def _too_few(claim: Claim) -> str:
    if claim.part is Part.SLICE:
        one, several = "time slice is free", "time slices are free"
    elif claim.part is Part.HALF:
        one, several = "card has a half free", "cards have a half free"
    elif claim.exclusive:
        one, several = "card is wholly free", "cards are wholly free"
    else:
        one, several = f"card has {_amounts(claim)} free", f"cards have {_amounts(claim)} free"
    return f"no {one}" if claim.cards == 1 else f"fewer than {claim.cards} {several}"


def _amounts(claim: Claim) -> str:
    return f"{claim.cores_pct or 0} % and {_memory(claim)}"


def _memory(claim: Claim) -> str:
    if claim.memory_mib is not None:
        return f"{claim.memory_mib} MiB"
    return "all its memory" if claim.memory_pct is None else f"{claim.memory_pct} % of its memory"
