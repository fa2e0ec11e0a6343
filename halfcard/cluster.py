"""What is known of the cluster, as plain data: its cards, its namespaces, their quotas and ConfigMaps.

The law: one odd object spoils only itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from . import names
from .capacity import Dealings, ImplausibleError, Published, stock
from .problems import printable

_NAME_CHARS: Final = 253
_SHARED: Final = "-SHARED"
"""NVIDIA's label says in the model's name that a card is time-sliced."""


@dataclass(frozen=True, slots=True)
class Card:
    """One physical card; `memory_mib` is None where the node does not say, `model` is then empty likewise."""

    index: int
    model: str
    memory_mib: int | None


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    cards: tuple[Card, ...] = ()


@dataclass(frozen=True, slots=True)
class Odd:
    """A node that cannot be believed, and the sentence that says why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"node {self.name or '(without a name)'} is left out: {self.why}"


@dataclass(frozen=True)
class ClusterView:
    """One moment of the cluster; what is absent is not known, which is not the same as not there.

    Attributes:
        configmap_keys: by namespace and name.
        quotas: ResourceQuota objects as they stand, by namespace.
    """

    nodes: tuple[Node, ...] = ()
    odd_nodes: tuple[Odd, ...] = ()
    configmap_keys: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    quotas: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    namespaces: frozenset[str] = frozenset()

    @cached_property
    def largest_card_mib(self) -> int | None:
        """None where no card's memory is known."""
        sizes = (card.memory_mib for node in self.nodes for card in node.cards)
        return max((size for size in sizes if size is not None), default=None)


NOTHING_KNOWN: Final = ClusterView()


def read_node(obj: Mapping[str, Any], dealings: Dealings = Dealings()) -> Node | Odd:  # noqa: B008  (frozen)
    """A Node object's cards, in whichever system's words it publishes them."""
    metadata = _mapping(obj, "metadata")
    name = printable(str(metadata.get("name") or ""), _NAME_CHARS)
    labels = _mapping(metadata, "labels")
    try:
        found = stock(Published(_mapping(_mapping(obj, "status"), "capacity"), labels), dealings)
    except ImplausibleError as doubt:
        return Odd(name, str(doubt))
    if not name:
        return Odd(name, 'metadata.name: got ""; a node has a name')
    model = str(labels.get(names.NVIDIA_LABEL_PRODUCT) or "").removesuffix(_SHARED)
    return Node(name, tuple(Card(index, model, found.memory_mib) for index in range(found.cards)))


def split(read: Iterable[Node | Odd]) -> tuple[tuple[Node, ...], tuple[Odd, ...]]:
    """The nodes to believe and the odd ones."""
    everything = tuple(read)
    return (
        tuple(node for node in everything if isinstance(node, Node)),
        tuple(node for node in everything if isinstance(node, Odd)),
    )


def _mapping(obj: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Anything else than a mapping holds nothing for us."""
    value = obj.get(key)
    return value if isinstance(value, Mapping) else {}
