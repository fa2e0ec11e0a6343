"""A pod on its cards, and what a record says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..cards import Card, Node
from .demand import ContainerStage, Need
from .layouts import Layout


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod on its cards.

    Attributes:
        containers: the names of those with claims, in the order of `needs`, as is `layout`.
        aliyun_unit_mib: what one aliyun.com/gpu-mem is.
    """

    node: Node
    containers: tuple[str, ...]
    needs: tuple[Need, ...]
    layout: Layout
    aliyun_unit_mib: int = 1024

    def cards(self, number: int) -> list[Card]:
        return [self.node.cards[at] for at in self.layout[number]]

    def apps(self, *dialects: str) -> list[int]:
        """The needs that other systems know of: they look at app containers only."""
        wanted = [number for number, need in enumerate(self.needs) if need.stage is ContainerStage.APP]
        return [number for number in wanted if self.needs[number].claim.dialect in dialects]


Named = tuple[tuple[str, ...], ...]
"""For each need, its cards by uuid or index."""

NOT_UNDERSTOOD: Final[Named] = ()
"""Something is written, and it does not say which cards."""
