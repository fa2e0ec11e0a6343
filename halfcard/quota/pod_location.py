"""The location of a pod for budgets by model and pool: on which cards, with which amounts, and in which pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from ..cards import Node
from ..claims import Need
from ..placing.layouts import Layout
from ..placing.records import Named, positions
from .charge import charge
from .ledger import Amounts


class PodLocation(NamedTuple):
    """
    Attributes:
        pool: of the node; empty for none.
        total: what the pod is charged for.
        by_model: what of it, on the cards of each model of the node.
    """

    pool: str
    total: Amounts
    by_model: Mapping[str, Amounts]


class NodeKind(NamedTuple):
    """The properties by which budgets tell nodes apart."""

    pool: str
    models: tuple[str, ...]


UNKNOWN: Final = NodeKind("", ("",))
"""The kind of a node that does not exist, or publishes no cards."""


def kind_of(node: Node) -> NodeKind:
    return NodeKind(node.pool, tuple(sorted({card.model for card in node.cards})) or UNKNOWN.models)


def widest_location(kind: NodeKind, needs: tuple[Need, ...]) -> PodLocation:
    """The location of a pod that may be on any card of a node: what it could be charged for on each model."""
    asked = charge(needs)
    return PodLocation(kind.pool, asked, dict.fromkeys(kind.models, asked))


def location_of(node: Node, needs: tuple[Need, ...], layout: Layout) -> PodLocation:
    models = {node.cards[at].model for cards in layout for at in cards}
    by_model = {model: charge(_on(model, node, needs, layout)) for model in models}
    return PodLocation(node.pool, charge(needs), by_model)


def recorded_location(node: Node, needs: tuple[Need, ...], named: Named | None) -> PodLocation:
    """The location by the record; without a valid record, any card of the node."""
    layout = positions(named, node) if named is not None else None
    return location_of(node, needs, layout) if layout else widest_location(kind_of(node), needs)


def _on(model: str, node: Node, needs: tuple[Need, ...], layout: Layout) -> Iterator[Need]:
    """Yields the needs that lie on cards of this model."""
    for need, cards in zip(needs, layout, strict=True):
        here = Counter(node.cards[at].model for at in cards)[model]
        if here:
            yield need._replace(claim=replace(need.claim, cards=here))
