"""Keeps the model and pool of the nodes on which pods run, for budgets by model and pool.

Invariant: the facts of a node are kept as long as its pods exist, which may be longer than the node exists.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from halfcard.capacity import CapacityRules
from halfcard.cards import Node
from halfcard.cluster_view import ImplausibleNode, read_node
from halfcard.node_changes import without_heartbeat
from kube.api.access import Access
from kube.api.informer import Informer
from kube.api.list_watch import Collection, Undecodable, WatchEvent, decoded
from kube.node_source import NODES

_MOST_GONE: Final = 1_000
_encode: Final = msgspec.json.Encoder().encode

Object = Mapping[str, Any]


class NodeLocations:
    """The nodes by name, while `informer` runs; calls `changed` when the cards, models or pool of a node changed."""

    def __init__(self, access: Access, rules: CapacityRules, changed: Callable[[], None]) -> None:
        self._rules = rules
        self._changed = changed
        self._known: dict[str, Node] = {}
        self._gone: OrderedDict[str, Node] = OrderedDict()
        self._hashes: dict[str, int] = {}
        collection = Collection(access, NODES, dict[str, Any])
        self.informer = Informer(collection, listed=self._list, changed=self._change, name="nodes")

    def get(self, name: str) -> Node | None:
        return self._known.get(name) or self._gone.get(name)

    def _list(self, found: Sequence[dict[str, Any] | Undecodable]) -> None:
        there = {each["metadata"]["name"]: each for each in found if isinstance(each, dict)}
        for name in self._known.keys() - there.keys():
            self._drop(name)
        if any([*map(self._put, there.values())]):
            self._changed()

    def _change(self, changes: Iterable[WatchEvent[dict[str, Any]]]) -> None:
        differ = False
        for node, is_deleted in decoded(changes):
            if is_deleted:
                self._drop(_name(node))
            else:
                differ |= self._put(node)
        if differ:
            self._changed()

    def _put(self, found: Object) -> bool:
        """Adds a node; returns whether it has changed. Heartbeats are ignored."""
        name, digest = _name(found), hash(_encode(without_heartbeat(found)))
        if self._hashes.get(name) == digest:
            return False
        self._hashes[name] = digest
        before, node = self._known.get(name), read_node(found, self._rules)
        if isinstance(node, ImplausibleNode):
            return False  # the earlier content is better than nothing
        self._known[name] = _of_interest(node)
        self._gone.pop(name, None)
        return self._known[name] != before

    def _drop(self, name: str) -> None:
        self._hashes.pop(name, None)
        if (node := self._known.pop(name, None)) is not None:
            self._gone[name] = node
            if len(self._gone) > _MOST_GONE:
                self._gone.popitem(last=False)


def _of_interest(node: Node) -> Node:
    """Keeps only the models of the cards: their health concerns no budget."""
    cards = tuple([replace(card, links=(), numa=None, why_not="") for card in node.cards])
    return Node(node.name, cards, pool=node.pool)


def _name(found: Object) -> str:
    name: str = found["metadata"]["name"]
    return name
