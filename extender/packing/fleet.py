"""Describes a cluster as counts of equal nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from halfcard.cards import Node

from .strength import Strengths, strength


class NodeShape(NamedTuple):
    """The shape of an empty node; model, memory and strength are those of its first card, empty or 0 if unknown."""

    model: str
    cards: int
    card_mib: int
    cpu_milli: int
    memory_mib: int
    strength: float = 0.0


Fleet = tuple[tuple[NodeShape, int], ...]
"""Each shape, and the number of nodes of this shape."""


def fleet_of(nodes: Iterable[Node], strengths: Strengths = ()) -> Fleet:
    shapes = Counter(_shape(node, strengths) for node in nodes if node.cards)
    return tuple(sorted(shapes.items()))


def cards_in(fleet: Fleet) -> int:
    return sum(shape.cards * nodes for shape, nodes in fleet)


def usual_card_mib(fleet: Fleet) -> int:
    """Returns the median memory of a card; 0 if none is known."""
    sizes = sorted((shape.card_mib, shape.cards * nodes) for shape, nodes in fleet if shape.card_mib)
    passed, half = 0, sum(cards for _, cards in sizes) / 2
    for size, cards in sizes:
        passed += cards
        if passed >= half:
            return size
    return 0


def _shape(node: Node, strengths: Strengths) -> NodeShape:
    model, card_mib = node.cards[0].model, node.cards[0].memory_mib or 0
    strong = strength(model, card_mib, strengths)
    return NodeShape(model, len(node.cards), card_mib, node.cpu_milli, node.memory_mib, strong)
