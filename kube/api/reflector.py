"""Follows one collection in a thread: lists it once, then watches it for the life of the process.

Each watch has a thread because decoding thousands of objects would block the event loop for seconds.
Invariant: known state is kept. A lost connection is reported and retried; it never empties the state.
"""

from __future__ import annotations

import asyncio
import http.client
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final, Generic, TypeVar

import msgspec

from halfcard.problems import printable

from .access import AccessError
from .list_watch import AbsentError, ApiError, Collection, ExpiredError, Undecodable, WatchEvent

_FIRST_RETRY_S: Final = 0.5
_LAST_RETRY_S: Final = 30.0
_DOUBLINGS: Final = 6
_ABSENT_S: Final = 10.0

_FAILURES: Final = (ApiError, AccessError, OSError, http.client.HTTPException, msgspec.MsgspecError)
"""Failures of the server, the network or a proxy; anything else is a bug of Halfcard."""

T = TypeVar("T")
Pages = Iterator[list[T | Undecodable]]


@dataclass(eq=False)
class Reflector(Generic[T]):
    """Calls back in its own thread: `listed` with pages still to come, `changed` with one change at a time.

    Reading the pages may raise; `listed` keeps the old state until it has all pages. A collection that `may_be_absent`,
    such as one of custom resources, counts as empty while it does not exist.

    Attributes:
        ready: whether everything has been read once; stays true when the collection can later not be followed.
        trouble: the current problem in one sentence; None while the collection is followed.
        version: the version from which the next watch resumes.
    """

    collection: Collection[T]
    listed: Callable[[Pages[T]], None]
    changed: Callable[[WatchEvent[T]], None]
    name: str
    may_be_absent: bool = False
    ready: bool = field(default=False, init=False)
    trouble: str | None = field(default=None, init=False)
    version: str | None = field(default=None, init=False)
    _stopping: Event = field(default_factory=Event, init=False)
    _outdated: Event = field(default_factory=Event, init=False)
    _thread: Thread | None = field(default=None, init=False)

    def request_relist(self) -> None:
        """Requests a new list that begins after this call; callable from any thread."""
        self._outdated.set()
        self.collection.interrupt()

    async def run(self) -> None:
        """Runs until it is cancelled, and raises bugs of the thread. After a restart it lists again."""
        await self._begin()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def run() -> None:
            try:
                self._follow()
            except Exception as bug:  # noqa: BLE001  (carried over to the caller)
                if not self._stopping.is_set():
                    loop.call_soon_threadsafe(ended.set_exception, bug)

        self._thread = Thread(target=run, name=self.name, daemon=True)
        self._thread.start()
        try:
            await ended
        finally:
            self._stopping.set()
            self.collection.abandon()

    async def _begin(self) -> None:
        """Starts with a list: otherwise a change at which a callback failed would be lost."""
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
        self.version = None
        self._stopping.clear()
        self.collection.resume()

    def _follow(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                self._follow_once()
                failures = 0
            except _FAILURES as error:
                if self.may_be_absent and isinstance(error, AbsentError):
                    self._take_absence()
                elif not self._outdated.is_set():
                    failures = 1 if self.trouble is None else failures + 1
                    self._fail(error)
            self._wait(_pause(failures))

    def _wait(self, seconds: float) -> None:
        if not self._outdated.is_set():
            self._stopping.wait(seconds)

    def _follow_once(self) -> None:
        """Lists where no version is known to resume from, then watches until the watch ends."""
        if self._outdated.is_set():
            self._outdated.clear()
            self.version = None
        if self.version is None:
            self.version = self._list()
        with self.collection.watch(self.version) as changes:
            self.trouble = None
            if self._outdated.is_set():  # checked when `interrupt` can end the watch
                return
            for version, change in changes:
                if change is not None:
                    self.changed(change)
                self.version = version or self.version
                if self._outdated.is_set():
                    return

    def _list(self) -> str:
        version = ""

        def pages() -> Pages[T]:
            nonlocal version
            for items, version in self.collection.pages():  # noqa: B007  (the last one counts)
                yield items

        self.listed(pages())
        self.ready = True
        return version

    def _take_absence(self) -> None:
        self.version = self.trouble = None
        self.listed(iter(()))
        self.ready = True
        self._wait(_ABSENT_S)

    def _fail(self, error: Exception) -> None:
        if isinstance(error, ExpiredError):
            self.version = None
        why = str(error) or type(error).__name__
        self.trouble = printable(f"{self.name} may be out of date: {why}")


def _pause(failures: int) -> float:
    """Returns a random time below a bound that doubles, so that many processes do not retry at the same moment."""
    bound = min(_LAST_RETRY_S, _FIRST_RETRY_S * 2.0 ** min(failures, _DOUBLINGS))
    return random.uniform(0, bound)  # noqa: S311  (no secret)
