"""The definition of a layout, to check the search: it tries every assignment at every moment of a pod's life."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement, product

from halfcard import names
from halfcard.claims import ContainerStage, Need, Part
from halfcard.placing.card_usage import LIMITED, CardMode, CardRoom, CardUse, mode_of, use_of
from halfcard.placing.indistinguishable import same_cards_as
from halfcard.placing.layouts import Layout
from halfcard.placing.room import Room

from .examples import Asking


def every_way(room: Room, asking: Asking) -> Iterator[Layout]:
    choices = [_choices(room, need, asking) for need in asking.demand.needs]
    return (layout for layout in product(*choices) if is_way(room, asking, layout))


def _choices(room: Room, need: Need, asking: Asking) -> list[tuple[int, ...]]:
    is_limited = mode_of(need.claim, room.slices) in LIMITED
    usable = [at for at, card in enumerate(room.cards) if not (card.why_not or (is_limited and card.not_held))]
    allowed = [at for at in usable if asking.demand.wanted.allows(room.cards[at])]
    is_slice = use_of(need.claim, room.cards[0], room.slices).mode is CardMode.SLICES
    choose = combinations_with_replacement if is_slice else combinations
    return list(choose(allowed, need.claim.cards))


def is_way(room: Room, asking: Asking, layout: Layout) -> bool:
    asks_for_slices = any(need.claim.part is Part.SLICE for need in asking.demand.needs)
    if asks_for_slices and room.slices != names.NVIDIA_GPU_SHARED:
        return False
    return _fits(room, asking.demand.needs, layout) and _is_told_apart(asking.demand.needs, layout)


def _fits(room: Room, needs: tuple[Need, ...], layout: Layout) -> bool:
    for at in range(len(room.cards)):
        modes = set()
        for running in moments(needs):
            uses = [
                use_of(needs[number].claim, room.cards[at], room.slices)
                for number in running
                for position in layout[number]
                if position == at
            ]
            if not _fit(room, at, uses):
                return False
            modes |= {use.mode for use in uses} - {CardMode.EXCLUSIVE}
        if len(modes) > 1:
            return False
    return True


def moments(needs: tuple[Need, ...]) -> Iterator[list[int]]:
    """The containers that run beside each init container, and after them."""
    numbered = list(enumerate(needs))
    for number, need in numbered:
        if need.stage is ContainerStage.INIT:
            started = [other for other, it in numbered if it.stage is ContainerStage.SIDECAR and it.order < need.order]
            yield [*started, number]
    yield [number for number, need in numbered if need.stage is not ContainerStage.INIT]


def _fit(room: Room, at: int, uses: list[CardUse]) -> bool:
    if not uses:
        return True
    card, left = room.cards[at], room.left[at]
    mode = uses[0].mode
    if any(use.mode is not mode for use in uses) or left.mode not in (CardMode.FREE, mode):
        return False
    if mode is CardMode.EXCLUSIVE:
        return len(uses) == 1 and left.mode is CardMode.FREE
    if mode is CardMode.SHARED:
        cores, mib = sum(use.cores for use in uses), sum(use.mib for use in uses)
        return card.memory_mib is not None and cores <= left.cores and mib <= left.mib
    return len(uses) <= _parts(left, mode, card.replicas)


def _parts(left: CardRoom, mode: CardMode, replicas: int) -> int:
    if left.mode is not CardMode.FREE:
        return left.parts
    return 2 if mode is CardMode.HALVES else replicas


def _is_told_apart(needs: tuple[Need, ...], layout: Layout) -> bool:
    ties = [(number, same_cards_as(needs, number)) for number in range(len(needs))]
    return all(tied is None or layout[number] == layout[tied] for number, tied in ties)
