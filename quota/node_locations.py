"""Keeps the cards and pools of nodes, for budgets by model and pool, which nodes answer, and what pods some could take.

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
from halfcard.dra.driver_nodes import DriverNodes
from halfcard.node_changes import answers, without_heartbeat
from halfcard.placing.demand import Demand
from halfcard.placing.driver_demand import may_go_to_driver
from halfcard.placing.empty_rooms import could_take, empty_rooms
from halfcard.placing.room import Room
from kube.api.access import Access
from kube.api.informer import Informer
from kube.api.list_watch import Collection, Undecodable, WatchEvent, decoded
from kube.driver_watches import DriverWatches
from kube.node_source import NODES

_MOST_GONE: Final = 1_000
_MOST_DEMANDS: Final = 1_000
_encode: Final = msgspec.json.Encoder().encode

Object = Mapping[str, Any]


class NodeLocations:
    """The nodes by name, while `informer` runs; calls `changed` when the cards, models or pool of a node changed, or
    whether it answers.
    """

    def __init__(self, access: Access, rules: CapacityRules, changed: Callable[[], None]) -> None:
        self._rules = rules
        self._changed = changed
        self._known: dict[str, Node] = {}
        self._gone: OrderedDict[str, Node] = OrderedDict()
        self._hashes: dict[str, int] = {}
        self._answering: set[str] = set()
        self._rooms: frozenset[Room] | None = None
        self._could_take: dict[Demand, bool] = {}
        self._drivers = DriverNodes()
        self.driver_watches = DriverWatches(access, self._drivers)
        collection = Collection(access, NODES, dict[str, Any])
        self.informer = Informer(collection, listed=self._list, changed=self._change, name="nodes")

    def get(self, name: str) -> Node | None:
        return self._known.get(name) or self._gone.get(name)

    def answers(self, name: str) -> bool:
        """Returns whether the node exists and is Ready."""
        return name in self._answering

    def could_take(self, demand: Demand) -> bool:
        """Returns whether an existing node could take such a pod without any other pod; also where no node has cards,
        because they may be added on demand, and where a driver of Dynamic Resource Allocation may have the cards.
        """
        if self._drivers and may_go_to_driver(demand):
            return True
        if self._rooms is None or len(self._could_take) > _MOST_DEMANDS:
            self._rooms, self._could_take = empty_rooms(self._known.values()), {}
        if demand not in self._could_take:
            self._could_take[demand] = not self._rooms or could_take(self._rooms, demand)
        return self._could_take[demand]

    def _list(self, found: Sequence[dict[str, Any] | Undecodable]) -> None:
        there = {each["metadata"]["name"]: each for each in found if isinstance(each, dict)}
        gone = [self._drop(name) for name in self._hashes.keys() - there.keys()]
        if any([*gone, *map(self._put, there.values())]):
            self._changed()

    def _change(self, changes: Iterable[WatchEvent[dict[str, Any]]]) -> None:
        differ = False
        for node, is_deleted in decoded(changes):
            differ |= self._drop(_name(node)) if is_deleted else self._put(node)
        if differ:
            self._changed()

    def _put(self, found: Object) -> bool:
        """Adds a node; returns whether it has changed. Heartbeats are ignored."""
        name, digest = _name(found), hash(_encode(without_heartbeat(found)))
        if self._hashes.get(name) == digest:
            return False
        self._hashes[name] = digest
        return self._put_cards(name, found) | self._set_answering(name, is_answering=answers(found))

    def _put_cards(self, name: str, found: Object) -> bool:
        before, node = self._known.get(name), read_node(found, self._rules)
        if isinstance(node, ImplausibleNode):
            return False  # the earlier content is better than nothing
        self._known[name] = _of_interest(node)
        self._gone.pop(name, None)
        if self._known[name] == before:
            return False
        self._rooms = None
        return True

    def _set_answering(self, name: str, *, is_answering: bool) -> bool:
        """Returns whether this has changed."""
        did = name in self._answering
        (self._answering.add if is_answering else self._answering.discard)(name)
        return did != is_answering

    def _drop(self, name: str) -> bool:
        """Removes a node; returns whether it answered, since its cards are kept."""
        self._hashes.pop(name, None)
        if (node := self._known.pop(name, None)) is not None:
            self._rooms = None
            self._gone[name] = node
            if len(self._gone) > _MOST_GONE:
                self._gone.popitem(last=False)
        return self._set_answering(name, is_answering=False)


def _of_interest(node: Node) -> Node:
    """Keeps only what the cards are: their health concerns no budget."""
    cards = tuple([replace(card, links=(), numa=None, why_not="", not_held="") for card in node.cards])
    return Node(node.name, cards, node.slices, node.pool)


def _name(found: Object) -> str:
    name: str = found["metadata"]["name"]
    return name
