"""Why a node, or one card of it, cannot take a demand: ten reasons, each one text for all nodes of a call.

Numbers of a node never appear: kube-scheduler counts equal texts and writes them into the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from .. import names
from ..claims import Claim, Part
from .demand import Demand, Need
from .glance import fits_alone
from .room import Room
from .uses import Left, Mode, Use, is_sold, mode_of, use_of


class Why(StrEnum):
    NO_CARDS = "no GPU known to Halfcard"
    NOT_WANTED = "no card is among those that the pod asks for"
    OUT_OF_ORDER = "every card is out of order or cordoned"
    TOO_FEW = "too few cards are free"
    TOO_FEW_SLICES = "too few time slices are free"
    LOCKED = "every card is in use in another way"
    CORES = "too few cores"
    MEMORY = "too little memory"
    AT_ONCE = "too few cores or too little memory"
    TOGETHER = "no room for all its containers together"


def why_not(room: Room, demand: Demand) -> Why:
    """The one reason for a node that has no way to lay the demand."""
    if not room.cards:
        return Why.NO_CARDS
    wanted, usable = demand.wanted, room.usable
    if wanted.narrows:
        if not any(wanted.allows(card) for card in room.cards):
            return Why.NOT_WANTED
        usable = tuple([at for at in usable if wanted.allows(room.cards[at])])
    if not usable:
        return Why.OUT_OF_ORDER
    for need in demand.needs:
        if len(demand.needs) == 1 or not fits_alone(room, need, wanted):
            return _single(room, need, usable)
    return Why.TOGETHER


def why_not_where(demand: Demand, slices: str) -> Callable[[Room], Why]:
    """`why_not` in rooms of nodes that sell time slices so: what the demand alone says is looked at once for all."""
    one = len(demand.needs) == 1 and not demand.wanted.narrows
    why = _of_any_room(demand.needs[0], slices) if one else None
    if why is None:
        return lambda room: why_not(room, demand)
    return lambda room: why if room.usable else why_not(room, demand)


def why_not_card(room: Room, at: int, need: Need, demand: Demand) -> Why | None:
    """The reason of one card; None where it would do for one card's worth of the need."""
    card = room.cards[at]
    if not demand.wanted.allows(card):
        return Why.NOT_WANTED
    if card.why_not:
        return Why.OUT_OF_ORDER
    if not is_sold(need.claim, room.slices):
        return Why.NOT_WANTED
    use = use_of(need.claim, card, room.slices)
    return _short_of(use, room.left[at], card.memory_mib)


def _single(room: Room, need: Need, usable: tuple[int, ...]) -> Why:
    if (why := _of_any_room(need, room.slices)) is not None:
        return why
    reasons = [
        _short_of(use_of(need.claim, room.cards[at], room.slices), room.left[at], room.cards[at].memory_mib)
        for at in usable
    ]
    return _summed_up([reason for reason in reasons if reason is not None])


def _of_any_room(need: Need, slices: str) -> Why | None:
    """None where the cards have to be looked at."""
    mode = mode_of(need.claim, slices)
    if not is_sold(need.claim, slices):
        return Why.NOT_WANTED
    if mode is Mode.SLICES:
        return Why.TOO_FEW_SLICES
    return Why.TOO_FEW if need.claim.cards > 1 or mode is not Mode.SHARED else None


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
    if use.mode is Mode.SLICES:
        return None if left.mode is Mode.FREE or left.parts >= use.parts else Why.TOO_FEW_SLICES
    if use.mode is Mode.HALVES:
        return None if left.mode is Mode.FREE or left.parts >= use.parts else Why.TOO_FEW
    return _short_of_amounts(use, left, card_mib)


def _short_of_amounts(use: Use, left: Left, card_mib: int | None) -> Why | None:
    cores, memory = use.cores > left.cores, use.mib > left.mib or card_mib is None
    if cores and memory:
        return Why.AT_ONCE
    return Why.CORES if cores else Why.MEMORY if memory else None


def text(why: Why, demand: Demand) -> str:
    """The sentence for the scheduler, with the pod's numbers in it where all its containers ask for the same."""
    claims = {need.claim for need in demand.needs}
    if why is Why.NOT_WANTED:
        return _not_wanted(demand, claims)
    if len(claims) != 1:
        return str(why)
    (claim,) = claims
    match why:
        case Why.TOO_FEW:
            return _too_few(claim)
        case Why.TOO_FEW_SLICES:
            return _fewer(claim.cards, "time slice is free", "time slices are free")
        case Why.CORES:
            return f"no card has {claim.cores_pct} % free"
        case Why.MEMORY:
            return f"no card has {_memory(claim)} free"
        case Why.AT_ONCE:
            return f"no card has {_amounts(claim)} free at once"
    return str(why)


def _not_wanted(demand: Demand, claims: Iterable[Claim]) -> str:
    slices = names.NVIDIA_GPU_SHARED if any(claim.part is Part.SLICE for claim in claims) else ""
    asked = ", ".join(filter(None, (demand.wanted.text, slices)))
    return f"no card is what the pod asks for ({asked})" if asked else str(Why.NOT_WANTED)


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
