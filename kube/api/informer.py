"""One collection, followed for an event loop: what a thread of its own reads is handed over in order, in batches."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, TypeVar

from .list_watch import Collection, Undecodable, WatchEvent
from .reflector import Pages, Reflector

_TOGETHER_S: Final = 0.005
"""Changes wait so long for company: a loop that is woken for each of a thousand a second does little else."""
_BATCH: Final = 200

T = TypeVar("T")

FollowJob = tuple[str, Callable[[], Coroutine[Any, Any, None]]]
"""A background job: its name for the log, and what runs until it is cancelled."""


class _Listed(NamedTuple, Generic[T]):
    """`granted` are those who wished for a list that begins when this one did, or earlier."""

    items: list[T | Undecodable]
    granted: list[asyncio.Future[None]]


class Informer(Generic[T]):
    """Calls back on the event loop that runs it, in order, with changes that come close together as one batch."""

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
        self._announced = False
        self._wishes: list[asyncio.Future[None]] = []

    async def wait_until_ready(self) -> None:
        """Returns when the first complete list has been handed over."""
        await self._seen.wait()

    async def refresh(self) -> None:
        """Returns when a list that began after this call has been handed over."""
        wish: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wishes.append(wish)
        self._follower.request_relist()
        await wish

    @property
    def ready(self) -> bool:
        """Has the first complete list been handed over?"""
        return self._seen.is_set()

    @property
    def trouble(self) -> str | None:
        """Describes what is wrong now, in one sentence."""
        return self._follower.trouble

    async def run(self) -> None:
        """Runs until it is cancelled, and raises bugs of the thread and of the callbacks.

        When it is run again, it lists everything again.
        """
        self._announced = False
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
        granted, self._wishes = self._wishes, []
        try:
            self._take(_Listed(list(chain.from_iterable(pages)), granted))
        except BaseException:
            self._wishes.extend(granted)
            raise

    def _take(self, news: _Listed[T] | WatchEvent[T]) -> None:
        self._waiting.append(news)
        if not self._announced:
            self._announced = True
            self._loop.call_soon_threadsafe(self._loop.call_later, _TOGETHER_S, self._hand_over)

    # On the loop

    def _hand_over(self) -> None:
        if self._failed.done():
            return
        self._announced = False  # before anything is taken: what comes from now on is announced again
        try:
            self._hand_over_some()
        except Exception as bug:  # noqa: BLE001  (carried over to `run`)
            self._failed.set_exception(bug)
            return
        if self._waiting:
            self._loop.call_soon(self._hand_over)

    def _hand_over_some(self) -> None:
        changes: list[WatchEvent[T]] = []
        while self._waiting and len(changes) < _BATCH:
            news = self._waiting.popleft()
            if isinstance(news, _Listed):
                self._hand_over_changes(changes)
                changes = []
                self._hand_over_list(news)
            else:
                changes.append(news)
        self._hand_over_changes(changes)

    def _hand_over_list(self, news: _Listed[T]) -> None:
        try:
            self._listed(news.items)
        except BaseException:
            self._wishes.extend(news.granted)
            raise
        self._seen.set()
        for wish in news.granted:
            if not wish.done():
                wish.set_result(None)

    def _hand_over_changes(self, changes: list[WatchEvent[T]]) -> None:
        if changes:
            self._changed(changes)


def follow_jobs(informers: Iterable[Informer[Any]]) -> list[FollowJob]:
    """Returns the background job of each informer, with its name for the log."""
    return [(f"follow {each.name}", each.run) for each in informers]
