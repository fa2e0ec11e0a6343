"""Decides which containers of a card may use its cores up to their ceiling, because no neighbour needs them.

Law: the ceilings of those, and what all others need, are never more than the card. A container that waits for its share
needs all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

_CARD: Final = 1000
_MARGIN: Final = 50
"""What a container that uses less than its share may suddenly need, until the next second."""


class CoreUse(NamedTuple):
    """The cores of a container on a card, in 1/1000 of the card.

    Attributes:
        share: None where it is not limited.
        ceiling: None where it never exceeds its share.
        waits: whether its launches waited in the last second.
    """

    share: int | None
    ceiling: int | None
    used: int
    waits: bool

    @property
    def need(self) -> int:
        if self.share is not None and self.waits:
            return self.share
        wanted = self.used + _MARGIN if self.used else 0
        return wanted if self.share is None else min(self.share, wanted)


def with_spare(uses: Sequence[CoreUse], others: int, turn: int) -> frozenset[int]:
    """Returns the positions of the containers that may use their ceiling.

    Args:
        uses: the containers of the card.
        others: what all other programs use of it.
        turn: a number that grows, so that containers that cannot all have their ceiling have it in turn.
    """
    needs = [each.need for each in uses]
    left = _CARD - others - sum(needs)
    found = set()
    for at in _in_turn(len(uses), turn):
        ceiling = uses[at].ceiling
        if ceiling is not None and (more := max(0, ceiling - needs[at])) <= left:
            found.add(at)
            left -= more
    return frozenset(found)


def _in_turn(count: int, turn: int) -> Sequence[int]:
    return [(at + turn) % count for at in range(count)]
