"""Finds why a node, or one card of it, cannot take a demand: eleven reasons, each with one text for all nodes.

A text has no numbers of a node: kube-scheduler counts equal texts and writes them into the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from .. import names
from ..claims import Claim, Need, Part
from .card_usage import CardMode, CardRoom, CardUse, is_closed, is_offered, mode_of, use_of
from .demand import Demand
from .fast_fit import fits_alone
from .room import Room


class Reason(StrEnum):
    NO_CARDS = "no GPU known to Halfcard"
    NOT_WANTED = "no card is among those that the pod asks for"
    OUT_OF_ORDER = "every card is out of order or cordoned"
    NOT_HELD = "isolation is enforce, and no card can hold containers to their share"
    TOO_FEW = "too few cards are free"
    TOO_FEW_SLICES = "too few time slices are free"
    LOCKED = "every card is in use in another way"
    CORES = "too few cores"
    MEMORY = "too little memory"
    AT_ONCE = "too few cores or too little memory"
    TOGETHER = "no room for all its containers together"


def why_not(room: Room, demand: Demand) -> Reason:
    """Returns the main reason why no layout of the demand exists on the node."""
    if not room.cards:
        return Reason.NO_CARDS
    wanted, usable = demand.wanted, room.usable
    if wanted.narrows:
        if not any(wanted.allows(card) for card in room.cards):
            return Reason.NOT_WANTED
        usable = tuple([at for at in usable if wanted.allows(room.cards[at])])
    if not usable:
        return Reason.OUT_OF_ORDER
    if any(_is_not_held(room, usable, need) for need in demand.needs):
        return Reason.NOT_HELD
    for need in demand.needs:
        if len(demand.needs) == 1 or not fits_alone(room, need, wanted):
            return _single(room, need, usable)
    return Reason.TOGETHER


def why_not_where(demand: Demand, slices: str) -> Callable[[Room], Reason]:
    """Returns `why_not` for rooms of nodes that offer these slices; what depends on the demand alone is done once."""
    one = len(demand.needs) == 1 and not demand.wanted.narrows
    why = _of_any_room(demand.needs[0], slices) if one else None
    if why is None:
        return lambda room: why_not(room, demand)
    return lambda room: why if room.usable and not room.has_loose else why_not(room, demand)


def why_not_card(room: Room, at: int, need: Need, demand: Demand) -> Reason | None:
    """Returns the reason for one card; None where the card could be one of the need's."""
    card = room.cards[at]
    if not demand.wanted.allows(card):
        return Reason.NOT_WANTED
    if card.why_not:
        return Reason.OUT_OF_ORDER
    if not is_offered(need.claim, room.slices):
        return Reason.NOT_WANTED
    if is_closed(card, mode_of(need.claim, room.slices)):
        return Reason.NOT_HELD
    use = use_of(need.claim, card, room.slices)
    return _short_of(use, room.left[at], card.memory_mib)


def _is_not_held(room: Room, usable: Iterable[int], need: Need) -> bool:
    """Returns whether every usable card is closed to the need, because it is a share."""
    mode = mode_of(need.claim, room.slices)
    return room.has_loose and all(is_closed(room.cards[at], mode) for at in usable)


def _single(room: Room, need: Need, usable: tuple[int, ...]) -> Reason:
    if (why := _of_any_room(need, room.slices)) is not None:
        return why
    reasons = [
        _short_of(use_of(need.claim, room.cards[at], room.slices), room.left[at], room.cards[at].memory_mib)
        for at in usable
        if not is_closed(room.cards[at], mode_of(need.claim, room.slices))
    ]
    return _summed_up([reason for reason in reasons if reason is not None])


def _of_any_room(need: Need, slices: str) -> Reason | None:
    """Returns a reason that follows from the totals of the room; None where the cards have to be checked one by one."""
    mode = mode_of(need.claim, slices)
    if not is_offered(need.claim, slices):
        return Reason.NOT_WANTED
    if mode is CardMode.SLICES:
        return Reason.TOO_FEW_SLICES
    return Reason.TOO_FEW if need.claim.cards > 1 or mode is not CardMode.SHARED else None


def _summed_up(reasons: Iterable[Reason]) -> Reason:
    """Returns the main reason of several cards: that a card is too full counts more than that others are locked."""
    open_ones = set(reasons) - {Reason.LOCKED}
    if not open_ones:
        return Reason.LOCKED
    return open_ones.pop() if len(open_ones) == 1 else Reason.AT_ONCE


def _short_of(use: CardUse, left: CardRoom, card_mib: int | None) -> Reason | None:
    """Names the amounts that `card_usage.take` found too small."""
    if use.mode is CardMode.EXCLUSIVE:
        return None if left.mode is CardMode.FREE else Reason.TOO_FEW
    if left.mode not in (CardMode.FREE, use.mode):
        return Reason.LOCKED
    if use.mode is CardMode.SLICES:
        return None if left.mode is CardMode.FREE or left.parts >= use.parts else Reason.TOO_FEW_SLICES
    if use.mode is CardMode.HALVES:
        return None if left.mode is CardMode.FREE or left.parts >= use.parts else Reason.TOO_FEW
    return _short_of_amounts(use, left, card_mib)


def _short_of_amounts(use: CardUse, left: CardRoom, card_mib: int | None) -> Reason | None:
    cores, memory = use.cores > left.cores, use.mib > left.mib or card_mib is None
    if cores and memory:
        return Reason.AT_ONCE
    return Reason.CORES if cores else Reason.MEMORY if memory else None


def text(why: Reason, demand: Demand) -> str:
    """Returns the sentence for the scheduler, with the request where all containers request the same."""
    claims = {need.claim for need in demand.needs}
    if why is Reason.NOT_WANTED:
        return _not_wanted(demand, claims)
    if len(claims) != 1:
        return str(why)
    (claim,) = claims
    match why:
        case Reason.TOO_FEW:
            return _too_few(claim)
        case Reason.TOO_FEW_SLICES:
            return _fewer(claim.cards, "time slice is free", "time slices are free")
        case Reason.CORES:
            return f"no card has {claim.cores_pct} % free"
        case Reason.MEMORY:
            return f"no card has {_memory(claim)} free"
        case Reason.AT_ONCE:
            return f"no card has {_amounts(claim)} free at once"
    return str(why)


def _not_wanted(demand: Demand, claims: Iterable[Claim]) -> str:
    slices = names.NVIDIA_GPU_SHARED if any(claim.part is Part.SLICE for claim in claims) else ""
    asked = ", ".join(filter(None, (demand.wanted.text, slices)))
    return f"no card is what the pod asks for ({asked})" if asked else str(Reason.NOT_WANTED)


def _too_few(claim: Claim) -> str:
    if claim.part is Part.HALF:
        return _fewer(claim.cards, "card has a half free", "cards have a half free")
    if claim.exclusive:
        return _fewer(claim.cards, "card is wholly free", "cards are wholly free")
    return _fewer(claim.cards, f"card has {_amounts(claim)} free", f"cards have {_amounts(claim)} free")


def _fewer(wanted: int, one: str, several: str) -> str:
    return f"no {one}" if wanted == 1 else f"fewer than {wanted} {several}"


def _amounts(claim: Claim) -> str:
    return f"{claim.cores_pct or 0} % and {_memory(claim)}"


def _memory(claim: Claim) -> str:
    if claim.memory_mib is not None:
        return f"{claim.memory_mib} MiB"
    return "all its memory" if claim.memory_pct is None else f"{claim.memory_pct} % of its memory"
