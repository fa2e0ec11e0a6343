"""Shares one call among all callers that wait for its answer.

Invariant: an answer describes a state after the question, so no caller shares a call that was already under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Runs at most one call at a time; all callers that arrive meanwhile share the next."""

    def __init__(self, call: Callable[[], Awaitable[T]]) -> None:
        self._call = call
        self._latest: asyncio.Task[T] | None = None
        self._has_begun = True

    async def __call__(self) -> T:
        if self._latest is None or self._has_begun:
            self._has_begun = False
            self._latest = asyncio.create_task(self._after(self._latest), name="call for all who wait")
            self._latest.add_done_callback(_see)
        return await asyncio.shield(self._latest)

    async def _after(self, before: asyncio.Task[T] | None) -> T:
        if before is not None:
            await asyncio.wait((before,))
        self._has_begun = True
        return await self._call()


def _see(task: asyncio.Task[T]) -> None:
    """Retrieves the exception of a task that no caller waits for any more."""
    if not task.cancelled():
        task.exception()
