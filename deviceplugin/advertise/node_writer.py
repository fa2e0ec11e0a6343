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
from .node_events import (
    EVENTS_PATH,
    NodeEvent,
    RecentEvents,
    card_events,
    node_event,
    not_offered_events,
    offered_again_events,
)
from .node_patch import Patch, patch

STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
"""Keeps the conditions that other programs write."""

_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0
_MOST_EVENTS: Final = 50
_WRITTEN: Final = frozenset({HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.CONFLICT})
"""A conflict means that the Event was stored by an earlier call whose answer was lost."""


class _FailedError(Exception):
    """Something could not be written; the text says what and why."""


class NodeWriter:
    """Writes one node; `observe` and `announce` are cheap and may be called at any time.

    Attributes:
        trouble: why the last write failed; empty after a success.
        foreign: what other programs wrote and stays, a sentence each.
    """

    def __init__(self, calls: ApiCalls, node: str, log: Log, now: Callable[[], datetime]) -> None:
        self._calls = calls
        self._path = f"/api/v1/nodes/{quote(node, safe='')}"
        self._log = log
        self._now = now
        self._node: Mapping[str, Any] | None = None
        self._wanted: Announcement | None = None
        self._written: Announcement | None = None
        self._not_offered: Sequence[NodeEvent] = ()
        self._was_not_offered: Sequence[NodeEvent] = ()
        self._events: deque[bytes] = deque(maxlen=_MOST_EVENTS)
        self._recent = RecentEvents()
        self._changed = asyncio.Event()
        self.trouble = ""
        self.foreign: tuple[str, ...] = ()

    def observe(self, node: Mapping[str, Any] | None, *, is_news: bool = True) -> None:
        """Takes the watched node object; None where it does not exist."""
        self._take(node)
        if is_news:
            self._changed.set()

    def _take(self, node: Mapping[str, Any] | None) -> None:
        """Takes the newer object: the answer to a PATCH and a watch event may arrive in either order."""
        if node is None or self._node is None or _version(node) >= _version(self._node):
            self._node = node

    def announce(self, announcement: Announcement, problems: Sequence[str] = ()) -> None:
        """Sets the wanted content, and why something is not offered, a sentence each."""
        self._wanted = announcement
        self._not_offered = not_offered_events(problems)
        self._changed.set()

    async def run(self) -> None:
        self._changed.set()
        pause = _PAUSE_S
        while True:
            await self._changed.wait()
            self._changed.clear()
            pause = min(2 * pause, _LONGEST_PAUSE_S) if await self._is_troubled() else _PAUSE_S
            await asyncio.sleep(pause)

    async def _is_troubled(self) -> bool:
        """Writes the difference; True where that failed, or where the same was written before and reverted."""
        try:
            again = await self._write()
        except (_FailedError, NoAnswerError) as error:
            if self.trouble != (trouble := str(error)):
                self._log.warning("node not written", why=trouble)
            self.trouble = trouble
            self._changed.set()
            return True
        self.trouble = ""
        return again

    async def _write(self) -> bool:
        node, announcement = self._node, self._wanted
        if node is None or announcement is None:
            return False
        now = self._now()
        difference = patch(node, announcement, moment(now))
        self.foreign = difference.foreign
        self._queue(
            node, [*card_events(_inventory(node), announcement.inventory), *self._offer_events(difference.foreign)], now
        )
        await self._send_events()
        await self._apply(difference)
        undone = bool(difference.metadata or difference.status) and announcement == self._written
        self._written = announcement
        return undone

    def _offer_events(self, left: Sequence[str]) -> list[NodeEvent]:
        """Returns Events for what is not offered, and for what is offered again."""
        standing = [*self._not_offered, *not_offered_events(left)]
        ended = [each for each in self._was_not_offered if each not in standing]
        self._recent.forget([*ended, *offered_again_events(standing)])
        self._was_not_offered = standing
        return [*standing, *offered_again_events(ended)]

    async def _apply(self, difference: Patch) -> None:
        """Sends the metadata first: it remembers what we write into the status."""
        if difference.metadata:
            await self._patch(self._path, {"metadata": difference.metadata}, MERGE_PATCH)
        if difference.status:
            await self._patch(f"{self._path}/status", {"status": difference.status}, STRATEGIC_MERGE_PATCH)

    async def _patch(self, path: str, body: Mapping[str, Any], content_type: str) -> None:
        answer = await self._calls.patch(path, msgspec.json.encode(body), content_type)
        if answer.status == HTTPStatus.NOT_FOUND:
            self._node = None  # until the watch reports it again
        if answer.status != HTTPStatus.OK:
            raise _FailedError(f"the API server answered {answer.status} to PATCH {path}: {answer.message()}")
        self._take(msgspec.json.decode(answer.body))

    def _queue(self, node: Mapping[str, Any], events: Sequence[NodeEvent], now: datetime) -> None:
        for each in self._recent.due(events, now.timestamp()):
            if each.is_warning:
                self._log.warning("node event", reason=each.reason, why=each.message)
            else:
                self._log.event("node event", reason=each.reason, why=each.message)
            self._events.append(node_event(node, each, now))

    async def _send_events(self) -> None:
        while self._events:
            answer = await self._calls.post(EVENTS_PATH, self._events[0])
            if answer.status not in _WRITTEN:
                self._log.warning("event not written", why=answer.refusal())
            self._events.popleft()


def _version(node: Mapping[str, Any]) -> int:
    written = str(node["metadata"].get("resourceVersion", ""))
    return int(written) if written.isdecimal() else 0


def _inventory(node: Mapping[str, Any]) -> str | None:
    annotations = node["metadata"].get("annotations") or {}
    found = annotations.get(names.INVENTORY)
    return found if isinstance(found, str) else None
