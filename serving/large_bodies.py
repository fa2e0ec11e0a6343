"""Large bodies queue behind small ones: few are in memory at a time, and between two decisions small ones are served.

A large body waits in its connection: it is read only when it has a place, so the waiting ones take no memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final

from starlette.types import Scope

from serving.request_body import RefusedRequest, timeout_of

LARGE_BYTES: Final = 128 * 2**10
"""Nearly all objects are smaller: a pod has about 4 kB."""

PLACES: Final = 4
"""How many large bodies are in memory at the same time."""


class LargeBodies:
    """The queue of one process; a request has a place while it is read and answered, and a turn while it is decided."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(PLACES)
        self._turn = asyncio.Lock()

    def place(self, scope: Scope) -> AbstractAsyncContextManager[None]:
        """Waits for a place as long as the caller waits; a small body needs none."""
        return self._place(timeout_of(scope)) if _is_large(scope) else nullcontext()

    def turn(self, body: bytes) -> AbstractAsyncContextManager[object]:
        """Waits until no other large body is decided and every small one that has arrived is answered."""
        return self._next() if len(body) >= LARGE_BYTES else nullcontext()

    @asynccontextmanager
    async def _place(self, timeout_s: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(timeout_s):
                await self._places.acquire()
        except TimeoutError:
            raise RefusedRequest(429, f"other large requests took {timeout_s:g} s; try again") from None
        try:
            yield
        finally:
            self._places.release()

    @asynccontextmanager
    async def _next(self) -> AsyncIterator[None]:
        async with self._turn:
            await asyncio.sleep(0)  # what has arrived goes first
            yield


def _is_large(scope: Scope) -> bool:
    """Returns whether the header announces a large body; one without a length may become large."""
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return not length.isdigit() or int(length[:20]) >= LARGE_BYTES
