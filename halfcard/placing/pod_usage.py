"""What the containers of one pod hold of one card, one added after the other in the order of its needs.

The law: containers that run at the same time share what is left of a card; an init container may use what the
containers after it will have.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..cards import Card
from .card_usage import CardMode, CardRoom, CardUse, either, take, together
from .demand import ContainerStage, Need


class PodUsage(NamedTuple):
    """Of one card, by one pod.

    Attributes:
        part: the most at any time at which it is not the whole card.
        whole: the whole card, if it ever is.
        running: by app containers and sidecars together.
        sidecars: by each, and its place among the init containers.
    """

    part: CardUse | None
    whole: CardUse | None
    running: CardUse | None
    sidecars: tuple[tuple[int, CardUse], ...]

    def out_of(self, card: Card, left: CardRoom) -> CardRoom | None:
        """What a pod leaves of a card; None where it does not fit."""
        after = None if self.part is None else take(card, left, self.part)
        if self.whole is None or (after is None and self.part is not None):
            return after
        return take(card, left, self.whole)


NOTHING_HELD: Final = PodUsage(None, None, None, ())


def added(held: PodUsage, need: Need, use: CardUse) -> PodUsage | None:
    """With one container more; None where the containers exclude each other."""
    beside = _beside(held, need)
    now = use if beside is None else together(beside, use)
    if now is None:
        return None
    part, whole = held.part, held.whole
    if now.mode is CardMode.EXCLUSIVE:
        whole = now
    elif part is None:
        part = now
    elif (part := either(part, now)) is None:
        return None
    if need.stage is ContainerStage.INIT:
        return PodUsage(part, whole, held.running, held.sidecars)
    sidecars = (*held.sidecars, (need.order, use)) if need.stage is ContainerStage.SIDECAR else held.sidecars
    return PodUsage(part, whole, now, sidecars)


def _beside(held: PodUsage, need: Need) -> CardUse | None:
    """What else runs on the card while this container does."""
    if need.stage is not ContainerStage.INIT:
        return held.running
    total: CardUse | None = None
    for order, use in held.sidecars:
        if order < need.order:
            total = use if total is None else together(total, use)
    return total
