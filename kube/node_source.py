"""Reads the cluster's state from an API server: its nodes, and which of them have cards of a driver.

Invariant: known state is never dropped; the view changes only when all pages of a list have arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final

from halfcard.capacity import CapacityRules
from halfcard.cards import Node
from halfcard.cluster_view import NOTHING_KNOWN, ClusterView, ImplausibleNode, read_node, separate
from halfcard.dra.driver_nodes import DriverNodes

from .api.access import Access
from .api.list_watch import Collection, Undecodable, WatchEvent
from .api.reflector import Pages, Reflector
from .driver_watches import DriverWatches

NODES: Final = "/api/v1/nodes"


class NodeSource:
    """A ClusterSource that decodes nodes in the thread that follows them."""

    def __init__(self, access: Access, rules: CapacityRules | None = None) -> None:
        self._rules = rules or CapacityRules()
        self._nodes: dict[str, Node | ImplausibleNode] = {}
        self._view: ClusterView | None = NOTHING_KNOWN
        self._lock = Lock()
        nodes = Collection(access, NODES, dict[str, Any])
        self._follower = Reflector(nodes, listed=self._replace, changed=self._apply, name="nodes")
        self._drivers = DriverNodes()
        self._driver_watches = DriverWatches(access, self._drivers)

    def view(self) -> ClusterView:
        of_drivers = self._drivers.nodes()
        with self._lock:
            if self._view is None or self._view.driver_nodes is not of_drivers:
                nodes, odd = separate(self._nodes.values())
                self._view = ClusterView(nodes=nodes, odd_nodes=odd, driver_nodes=of_drivers)
            return self._view

    def ready(self) -> bool:
        return self._follower.ready

    def problems(self) -> tuple[str, ...]:
        odd = tuple(str(node) for node in self.view().odd_nodes)
        own = (self._follower.trouble,) if self._follower.trouble else ()
        return (*own, *self._driver_watches.problems(), *odd)

    async def watch(self) -> None:
        """Follows nodes and drivers until cancelled; raises bugs of the threads."""
        jobs = [self._follower.run, *[each.run for each in self._driver_watches.informers]]
        following = [asyncio.create_task(job(), name="follow the cluster") for job in jobs]
        try:
            await asyncio.gather(*following)
        finally:
            for each in following:
                each.cancel()

    def _replace(self, pages: Pages[dict[str, Any]]) -> None:
        read = {_name(item): self._read(item) for items in pages for item in items}
        with self._lock:
            self._nodes, self._view = read, None

    def _apply(self, change: WatchEvent[dict[str, Any]]) -> None:
        gone = change.type == "DELETED"
        self._put(_name(change.object), None if gone else self._read(change.object))

    def _read(self, node: Mapping[str, Any] | Undecodable) -> Node | ImplausibleNode:
        return ImplausibleNode(node.name, node.why) if isinstance(node, Undecodable) else read_node(node, self._rules)

    def _put(self, name: str, node: Node | ImplausibleNode | None) -> None:
        """Stores a node; a heartbeat changes nothing that is read here, and makes no new view."""
        with self._lock:
            if self._nodes.get(name) == node:
                return
            self._view = None
            if node is None:
                del self._nodes[name]
            else:
                self._nodes[name] = node


def _name(node: Mapping[str, Any] | Undecodable) -> str:
    return node.name if isinstance(node, Undecodable) else str(node["metadata"]["name"])
