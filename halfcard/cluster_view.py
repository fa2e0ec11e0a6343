"""The known state of the cluster as plain data: cards, namespaces, quotas and ConfigMaps.

Invariant: one implausible object affects only itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from . import names
from .capacity import CapacityRules, ImplausibleError, PublishedCapacity, card_stock
from .cards import Card, Node
from .inventory import Inventory, read_inventory
from .problems import printable
from .quantity import NANOS, Quantity

_NAME_CHARS: Final = 253
_MIB: Final = 2**20
_NOTHING: Final = Inventory(())
_SHARED: Final = "-SHARED"
"""NVIDIA's label says in the model's name that a card is time-sliced."""


@dataclass(frozen=True, slots=True)
class ImplausibleNode:
    """A node with impossible values, and the reason as a sentence."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"node {self.name or '(without a name)'} is left out: {self.why}"


@dataclass(frozen=True)
class ClusterView:
    """The cluster at one moment; an absent object is unknown, and may exist.

    Attributes:
        configmap_keys: by namespace and name.
        quotas: ResourceQuota objects in the API server's form, by namespace.
        driver_nodes: the nodes whose `nvidia.com/gpu` a driver of Dynamic Resource Allocation has.
    """

    nodes: tuple[Node, ...] = ()
    odd_nodes: tuple[ImplausibleNode, ...] = ()
    configmap_keys: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    quotas: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    namespaces: frozenset[str] = frozenset()
    driver_nodes: frozenset[str] = frozenset()

    @cached_property
    def largest_card_mib(self) -> int | None:
        """Returns the memory of the largest card; None where no card's memory is known."""
        return max(self._card_sizes, default=None)

    @cached_property
    def smallest_card_mib(self) -> int | None:
        """Returns the memory of the smallest card; None where no card's memory is known."""
        return min(self._card_sizes, default=None)

    @cached_property
    def most_cards(self) -> int | None:
        """Returns the most cards of a node, as its plugin counts them; None where no node with cards is known."""
        return max((_offered_cards(node) for node in self.nodes if node.cards), default=None)

    @property
    def _card_sizes(self) -> set[int]:
        return {card.memory_mib for node in self.nodes for card in node.cards if card.memory_mib is not None}


def _offered_cards(node: Node) -> int:
    """Counts time slices as cards on a node that offers them as such."""
    return sum([card.replicas for card in node.cards]) if node.slices == names.NVIDIA_GPU else len(node.cards)


NOTHING_KNOWN: Final = ClusterView()


def read_node(obj: Mapping[str, Any], dealings: CapacityRules = CapacityRules()) -> Node | ImplausibleNode:  # noqa: B008  (frozen)
    """Reads the cards of a Node object: from our inventory, or else from the capacity that another system publishes."""
    metadata, status = _mapping(obj, "metadata"), _mapping(obj, "status")
    name = printable(_text(metadata, "name"), _NAME_CHARS)
    labels, annotations = _mapping(metadata, "labels"), _mapping(metadata, "annotations")
    published = PublishedCapacity(_mapping(status, "capacity"), labels)
    try:
        cards, slices = _inventory(published, annotations, dealings)
    except ImplausibleError as doubt:
        return ImplausibleNode(name, str(doubt))
    if not name:
        return ImplausibleNode(name, 'metadata.name: got ""; a node has a name')
    allocatable = _mapping(status, "allocatable") or published.capacity
    extended = frozenset(name for name in published.capacity if "/" in name)
    return Node(
        name,
        without_cordoned(cards, _text(annotations, names.CORDONED_CARDS)),
        slices,
        _first(labels, names.POOL_LABELS),
        _address(status),
        _thousandths(allocatable.get("cpu")),
        _thousandths(allocatable.get("memory")) // (1000 * _MIB),
        extended,
        frozenset(name for name in extended if not _thousandths(allocatable.get(name))),
    )


def _inventory(published: PublishedCapacity, annotations: Mapping[str, Any], dealings: CapacityRules) -> Inventory:
    written = annotations.get(names.INVENTORY)
    if isinstance(written, str):
        return read_inventory(written)
    if names.HAMI_REGISTER in annotations:
        return _NOTHING  # HAMi's agent starts no pod that HAMi's scheduler has not announced to it
    found = card_stock(published, dealings)
    model = _first(published.labels, names.MODEL_LABELS).removesuffix(_SHARED)
    cards = tuple([Card(index, model, found.memory_mib, replicas=found.replicas) for index in range(found.cards)])
    return Inventory(cards, _slices(published, len(cards)))


def _slices(published: PublishedCapacity, cards: int) -> str:
    """Returns the resource of time slices; without an inventory, more nvidia.com/gpu than cards means slices."""
    if published.amount(names.NVIDIA_GPU_SHARED):
        return names.NVIDIA_GPU_SHARED
    return names.NVIDIA_GPU if published.amount(names.NVIDIA_GPU) > cards > 0 else ""


def without_cordoned(cards: tuple[Card, ...], written: str) -> tuple[Card, ...]:
    cordoned = {word.strip() for word in written.split(",")} - {""}
    if not cordoned:
        return cards
    return tuple(
        replace(card, why_not=card.why_not or "cordoned") if {str(card.index), card.uuid} & cordoned else card
        for card in cards
    )


def _address(status: Mapping[str, Any]) -> str:
    addresses = status.get("addresses")
    found = addresses if isinstance(addresses, list) else []
    internal = [each for each in found if isinstance(each, dict) and each.get("type") == "InternalIP"]
    return printable(_text(internal[0], "address"), _NAME_CHARS) if internal else ""


def _thousandths(amount: object) -> int:
    """Returns thousandths of an amount; 0 where it is absent or cannot be read."""
    try:
        return max(0, Quantity.parse(str(amount)).nanos * 1000 // NANOS) if isinstance(amount, str | int) else 0
    except ValueError:
        return 0


def separate(read: Iterable[Node | ImplausibleNode]) -> tuple[tuple[Node, ...], tuple[ImplausibleNode, ...]]:
    """Separates nodes that could be read from implausible ones."""
    everything = tuple(read)
    return (
        tuple(node for node in everything if isinstance(node, Node)),
        tuple(node for node in everything if isinstance(node, ImplausibleNode)),
    )


def _first(labels: Mapping[str, Any], spellings: Iterable[str]) -> str:
    return next(filter(None, (_text(labels, each) for each in spellings)), "")


def _mapping(obj: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Returns a member that is a mapping; an empty one otherwise."""
    value = obj.get(key)
    return value if isinstance(value, Mapping) else {}


def _text(obj: Mapping[str, Any], key: str) -> str:
    """Returns a member that is a text; an empty one otherwise."""
    value = obj.get(key)
    return value if isinstance(value, str) else ""
