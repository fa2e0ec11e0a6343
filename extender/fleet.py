"""What a cluster is made of: nodes that are alike, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from halfcard.cards import Node


class Shape(NamedTuple):
    """Of a node with nothing on it; `model` is that of its first card."""

    model: str
    cards: int
    cpu_milli: int
    memory_mib: int


Fleet = tuple[tuple[Shape, int], ...]
"""Each shape, and how many nodes are of it."""


def fleet_of(nodes: Iterable[Node]) -> Fleet:
    shapes = Counter(
        Shape(node.cards[0].model, len(node.cards), node.cpu_milli, node.memory_mib) for node in nodes if node.cards
    )
    return tuple(sorted(shapes.items()))
