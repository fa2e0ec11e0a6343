"""The cluster's state from a real API server: nodes are listed, then followed, by one thread of its own.

The law: what was known stays known. A lost connection is reported and retried, it never empties the view.
"""

from __future__ import annotations

import asyncio
import http.client
import random
from collections.abc import Mapping
from threading import Event, Lock, Thread
from typing import Any, Final

import msgspec

from halfcard.capacity import Dealings
from halfcard.cluster import NOTHING_KNOWN, ClusterView, Node, Odd, read_node, split
from halfcard.problems import printable

from .access import Access, AccessError
from .list_watch import ApiError, Change, Collection, ExpiredError

NODES: Final = "/api/v1/nodes"
_FIRST_RETRY_S: Final = 0.5
_LAST_RETRY_S: Final = 30.0
_DOUBLINGS: Final = 6
_PROBLEM_CHARS: Final = 300

_FAILURES: Final = (ApiError, AccessError, OSError, http.client.HTTPException, msgspec.MsgspecError)
"""All that a server, a network and a proxy between them do; anything else is a bug of ours."""


class ApiSource:
    """A ClusterSource."""

    def __init__(self, access: Access, dealings: Dealings | None = None) -> None:
        self._dealings = dealings or Dealings()
        self._collection = Collection(access, NODES)
        self._nodes: dict[str, Node | Odd] = {}
        self._view: ClusterView | None = NOTHING_KNOWN
        self._lock = Lock()
        self._stopping = Event()
        self._version: str | None = None
        self._listed = False
        self._trouble: str | None = None

    def view(self) -> ClusterView:
        with self._lock:
            if self._view is None:
                nodes, odd = split(self._nodes.values())
                self._view = ClusterView(nodes=nodes, odd_nodes=odd)
            return self._view

    def ready(self) -> bool:
        return self._listed

    def problems(self) -> tuple[str, ...]:
        odd = tuple(str(node) for node in self.view().odd_nodes)
        return (self._trouble, *odd) if self._trouble else odd

    async def watch(self) -> None:
        """As the protocol says, once in the life of a source; a bug in the thread is raised here."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def run() -> None:
            try:
                self._follow()
            except Exception as bug:  # noqa: BLE001  (carried over to the caller)
                if not self._stopping.is_set():
                    loop.call_soon_threadsafe(ended.set_exception, bug)

        Thread(target=run, name="nodes", daemon=True).start()
        try:
            await ended
        finally:
            self._stopping.set()
            self._collection.abandon()

    def _follow(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                self._follow_once()
                failures = 0
            except _FAILURES as error:
                failures = 1 if self._trouble is None else failures + 1
                self._fail(error)
            self._stopping.wait(_pause(failures))

    def _follow_once(self) -> None:
        """Everything first, where no version is known to go on from; then changes for as long as they come."""
        if self._version is None:
            self._version = self._list()
        with self._collection.watch(self._version) as changes:
            self._trouble = None
            for change in changes:
                self._apply(change)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, ExpiredError):
            self._version = None
        self._trouble = printable(f"nodes may be out of date: {str(error) or type(error).__name__}", _PROBLEM_CHARS)

    def _list(self) -> str:
        """The view changes when all pages are there."""
        read: dict[str, Node | Odd] = {}
        version = ""
        for items, version in self._collection.pages():  # noqa: B007  (the last one counts)
            read |= {_name(item): read_node(item, self._dealings) for item in items}
        with self._lock:
            self._nodes, self._view = read, None
        self._listed = True
        return version

    def _apply(self, change: Change) -> None:
        if change.type in ("ADDED", "MODIFIED"):
            self._put(_name(change.object), read_node(change.object, self._dealings))
        elif change.type == "DELETED":
            self._put(_name(change.object), None)
        self._version = str(change.object["metadata"]["resourceVersion"])

    def _put(self, name: str, node: Node | Odd | None) -> None:
        """Heartbeats change nothing that we look at, and make no new view."""
        with self._lock:
            if self._nodes.get(name) == node:
                return
            self._view = None
            if node is None:
                del self._nodes[name]
            else:
                self._nodes[name] = node


def _name(node: Mapping[str, Any]) -> str:
    return str(node["metadata"]["name"])


def _pause(failures: int) -> float:
    """Random below a bound that doubles, so that many of us do not return at the same moment."""
    bound = min(_LAST_RETRY_S, _FIRST_RETRY_S * 2.0 ** min(failures, _DOUBLINGS))
    return random.uniform(0, bound)  # noqa: S311  (no secret)
