"""Writes the announcement to the node object when it differs from what was read there, at a limited rate.

Invariant: at least a second passes between two rounds of writes. After a failure, or when another program reverts a
write, the pause grows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import msgspec

from halfcard import names
from halfcard.events import moment
from kube.api.calls import MERGE_PATCH, ApiCalls, NoAnswerError
from serving.log import Log

from .announcement import Announcement
from .node_events import EVENTS_PATH, NodeEvent, RecentEvents, news, node_event, not_offered, offered_again
from .node_patch import Patch, patch

STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
"""Leaves the conditions that others write."""

_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0
_MOST_EVENTS: Final = 50
_WRITTEN: Final = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.CONFLICT})
"""An Event that is there already was written when no answer came."""


class _FailedError(Exception):
    """Something could not be written; the text says what and why."""


class NodeWriter:
    """About one node; `saw` and `say` may be called as often as one likes.

    Attributes:
        trouble: what could not be written, in one sentence; empty while all stands there.
        left: what others wrote and stays, a sentence each.
    """

    def __init__(self, calls: ApiCalls, node: str, log: Log, now: Callable[[], datetime]) -> None:
        self._calls = calls
        self._path = f"/api/v1/nodes/{quote(node, safe='')}"
        self._log = log
        self._now = now
        self._node: Mapping[str, Any] | None = None
        self._said: Announcement | None = None
        self._written: Announcement | None = None
        self._standing: Sequence[NodeEvent] = ()
        self._stood: Sequence[NodeEvent] = ()
        self._events: deque[bytes] = deque(maxlen=_MOST_EVENTS)
        self._told = RecentEvents()
        self._stirred = asyncio.Event()
        self.trouble = ""
        self.left: tuple[str, ...] = ()

    def saw(self, node: Mapping[str, Any] | None, *, is_news: bool = True) -> None:
        """The node object as it stands; None where there is none."""
        self._take(node)
        if is_news:
            self._stirred.set()

    def _take(self, node: Mapping[str, Any] | None) -> None:
        """The answer to a PATCH and what is watched pass each other."""
        if node is None or self._node is None or _version(node) >= _version(self._node):
            self._node = node

    def say(self, said: Announcement, problems: Sequence[str] = ()) -> None:
        """Sets the wanted content, and the problems of what is not offered."""
        self._said = said
        self._standing = not_offered(problems)
        self._stirred.set()

    async def run(self) -> None:
        self._stirred.set()
        pause = _PAUSE_S
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            pause = min(2 * pause, _LONGEST_PAUSE_S) if await self._is_troubled() else _PAUSE_S
            await asyncio.sleep(pause)

    async def _is_troubled(self) -> bool:
        """Writes what differs; whether it failed, or had been written before."""
        try:
            again = await self._write()
        except (_FailedError, NoAnswerError) as error:
            if self.trouble != (trouble := str(error)):
                self._log.warning("node not written", why=trouble)
            self.trouble = trouble
            self._stirred.set()
            return True
        self.trouble = ""
        return again

    async def _write(self) -> bool:
        node, said = self._node, self._said
        if node is None or said is None:
            return False
        now = self._now()
        wanted = patch(node, said, moment(now))
        self.left = wanted.left
        self._queue(node, [*news(_inventory(node), said.inventory), *self._stands(wanted.left)], now)
        await self._send_events()
        await self._apply(wanted)
        undone = bool(wanted.metadata or wanted.status) and said == self._written
        self._written = said
        return undone

    def _stands(self, left: Sequence[str]) -> list[NodeEvent]:
        """Returns Events for what is not offered, and for what is offered again."""
        standing = [*self._standing, *not_offered(left)]
        ended = [each for each in self._stood if each not in standing]
        self._told.forget([*ended, *offered_again(standing)])
        self._stood = standing
        return [*standing, *offered_again(ended)]

    async def _apply(self, wanted: Patch) -> None:
        """First what we remember of ourselves."""
        if wanted.metadata:
            await self._patch(self._path, {"metadata": wanted.metadata}, MERGE_PATCH)
        if wanted.status:
            await self._patch(f"{self._path}/status", {"status": wanted.status}, STRATEGIC_MERGE_PATCH)

    async def _patch(self, path: str, body: Mapping[str, Any], content_type: str) -> None:
        answer = await self._calls.patch(path, msgspec.json.encode(body), content_type)
        if answer.status == HTTPStatus.NOT_FOUND:
            self._node = None  # until it is seen again
        if answer.status != HTTPStatus.OK:
            raise _FailedError(f"the API server answered {answer.status} to PATCH {path}: {answer.message()}")
        self._take(msgspec.json.decode(answer.body))

    def _queue(self, node: Mapping[str, Any], happenings: Sequence[NodeEvent], now: datetime) -> None:
        for happening in self._told.fresh(happenings, now.timestamp()):
            if happening.is_warning:
                self._log.warning("node event", reason=happening.reason, why=happening.message)
            else:
                self._log.event("node event", reason=happening.reason, why=happening.message)
            self._events.append(node_event(node, happening, now))

    async def _send_events(self) -> None:
        while self._events:
            answer = await self._calls.post(EVENTS_PATH, self._events[0])
            if answer.status not in _WRITTEN:
                self._log.warning("event not written", why=f"{answer.status} {answer.message()}")
            self._events.popleft()


def _version(node: Mapping[str, Any]) -> int:
    written = str(node["metadata"].get("resourceVersion", ""))
    return int(written) if written.isdecimal() else 0


def _inventory(node: Mapping[str, Any]) -> str | None:
    annotations = node["metadata"].get("annotations") or {}
    found = annotations.get(names.INVENTORY)
    return found if isinstance(found, str) else None
