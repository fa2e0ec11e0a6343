"""Adds up what the containers of one pod use of one card, in the order of its needs.

Invariant: containers that run at the same time share what remains of a card; an init container may use what the
containers after it will have.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..cards import Card
from ..claims import ContainerStage, Need
from .card_usage import CardMode, CardRoom, CardUse, take, use_at_once, use_in_turn


class PodUsage(NamedTuple):
    """What one pod uses of one card.

    Attributes:
        part: the peak while it does not use the whole card.
        whole: the whole card, if the pod ever uses it.
        running: the sum of app containers and sidecars.
        sidecars: the use of each sidecar, with its position among the init containers.
    """

    part: CardUse | None
    whole: CardUse | None
    running: CardUse | None
    sidecars: tuple[tuple[int, CardUse], ...]

    def out_of(self, card: Card, left: CardRoom) -> CardRoom | None:
        """Returns what remains of a card; None where the pod does not fit."""
        after = None if self.part is None else take(card, left, self.part)
        if self.whole is None or (after is None and self.part is not None):
            return after
        return take(card, left, self.whole)


NOTHING_HELD: Final = PodUsage(None, None, None, ())


def added(held: PodUsage, need: Need, use: CardUse) -> PodUsage | None:
    """Adds one container; None where the containers exclude each other."""
    beside = _beside(held, need)
    now = use if beside is None else use_at_once(beside, use)
    if now is None:
        return None
    part, whole = held.part, held.whole
    if now.mode is CardMode.EXCLUSIVE:
        whole = now
    elif part is None:
        part = now
    elif (part := use_in_turn(part, now)) is None:
        return None
    if need.stage is ContainerStage.INIT:
        return PodUsage(part, whole, held.running, held.sidecars)
    sidecars = (*held.sidecars, (need.order, use)) if need.stage is ContainerStage.SIDECAR else held.sidecars
    return PodUsage(part, whole, now, sidecars)


def _beside(held: PodUsage, need: Need) -> CardUse | None:
    """Returns what runs on the card at the same time as this container."""
    if need.stage is not ContainerStage.INIT:
        return held.running
    total: CardUse | None = None
    for order, use in held.sidecars:
        if order < need.order:
            total = use if total is None else use_at_once(total, use)
    return total
