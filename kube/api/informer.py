"""Follows one collection for an event loop: a thread reads the changes and delivers them in order, in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, TypeVar

from .list_watch import Collection, Undecodable, WatchEvent
from .reflector import Pages, Reflector

_BATCH_DELAY_S: Final = 0.005
"""How long changes are collected: an event loop that is woken for each of 1,000 changes a second does little else."""
_BATCH: Final = 200

T = TypeVar("T")

FollowJob = tuple[str, Callable[[], Coroutine[Any, Any, None]]]
"""A background job: its name for the log, and what runs until it is cancelled."""


class _Listed(NamedTuple, Generic[T]):
    """A list, and the refreshes that it completes: those requested before it began."""

    items: list[T | Undecodable]
    refreshes: list[asyncio.Future[None]]


class Informer(Generic[T]):
    """Calls back on the event loop that runs it, in order; changes that arrive within 5 ms are one batch."""

    def __init__(
        self,
        collection: Collection[T],
        *,
        listed: Callable[[list[T | Undecodable]], None],
        changed: Callable[[list[WatchEvent[T]]], None],
        name: str,
        may_be_absent: bool = False,
    ) -> None:
        self.name = name
        self._seen = asyncio.Event()
        self._follower = Reflector(
            collection, listed=self._take_list, changed=self._take, name=name, may_be_absent=may_be_absent
        )
        self._listed = listed
        self._changed = changed
        self._waiting: deque[_Listed[T] | WatchEvent[T]] = deque()
        self._is_scheduled = False
        self._refreshes: list[asyncio.Future[None]] = []

    async def wait_until_ready(self) -> None:
        """Returns when the first complete list has been delivered."""
        await self._seen.wait()

    async def refresh(self) -> None:
        """Returns when a list that began after this call has been delivered."""
        refreshed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._refreshes.append(refreshed)
        self._follower.request_relist()
        await refreshed

    @property
    def ready(self) -> bool:
        """Returns whether the first complete list has been delivered."""
        return self._seen.is_set()

    @property
    def trouble(self) -> str | None:
        """The current problem in one sentence; None while the collection is followed."""
        return self._follower.trouble

    async def run(self) -> None:
        """Runs until it is cancelled, and raises bugs of the thread and of the callbacks.

        After a restart it lists everything again.
        """
        self._is_scheduled = False
        self._loop = asyncio.get_running_loop()
        self._failed: asyncio.Future[None] = self._loop.create_future()
        following = asyncio.create_task(self._follower.run(), name=f"read {self.name}")
        try:
            await asyncio.wait((following, self._failed), return_when=asyncio.FIRST_COMPLETED)
            await (self._failed if self._failed.done() else following)
        finally:
            following.cancel()
            self._failed.cancel()

    # In the thread

    def _take_list(self, pages: Pages[T]) -> None:
        refreshes, self._refreshes = self._refreshes, []
        try:
            self._take(_Listed(list(chain.from_iterable(pages)), refreshes))
        except BaseException:
            self._refreshes.extend(refreshes)
            raise

    def _take(self, news: _Listed[T] | WatchEvent[T]) -> None:
        self._waiting.append(news)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon_threadsafe(self._loop.call_later, _BATCH_DELAY_S, self._deliver)

    # On the loop

    def _deliver(self) -> None:
        if self._failed.done():
            return
        self._is_scheduled = False  # before anything is delivered: later changes schedule another delivery
        try:
            self._deliver_batch()
        except Exception as bug:  # noqa: BLE001  (carried over to `run`)
            self._failed.set_exception(bug)
            return
        if self._waiting:
            self._loop.call_soon(self._deliver)

    def _deliver_batch(self) -> None:
        changes: list[WatchEvent[T]] = []
        while self._waiting and len(changes) < _BATCH:
            news = self._waiting.popleft()
            if isinstance(news, _Listed):
                self._deliver_changes(changes)
                changes = []
                self._deliver_list(news)
            else:
                changes.append(news)
        self._deliver_changes(changes)

    def _deliver_list(self, news: _Listed[T]) -> None:
        try:
            self._listed(news.items)
        except BaseException:
            self._refreshes.extend(news.refreshes)
            raise
        self._seen.set()
        for refresh in news.refreshes:
            if not refresh.done():
                refresh.set_result(None)

    def _deliver_changes(self, changes: list[WatchEvent[T]]) -> None:
        if changes:
            self._changed(changes)


def follow_jobs(informers: Iterable[Informer[Any]]) -> list[FollowJob]:
    """Returns the background job of each informer, with its name for the log."""
    return [(f"follow {each.name}", each.run) for each in informers]
