"""Bounds what large bodies cost: they queue behind small ones, and have no more values than their size allows.

A large body waits in its connection: it is read only when it has a place, so the waiting ones take no memory. Few are
in memory at a time, and between two decisions small ones are served.

A value costs Python up to 118 bytes, an empty list 37 for three bytes of JSON. An object of a cluster has a value in 16
bytes, and few have more than thousands.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from starlette.types import Scope

from serving.request_body import RefusedRequest, timeout_of

LARGE_BYTES: Final = 128 * 2**10
"""Nearly all objects are smaller: a pod has about 4 kB."""

PLACES: Final = 4
"""How many large bodies are in memory at the same time."""

FREE_VALUES: Final = 150_000
"""A body of any density may have so many: they cost less than 20 MB."""

BYTES_PER_VALUE: Final = 16
"""A body with more values needs so many bytes for each, so that it takes about eight times its size."""


class LargeBodies:
    """The queue of one process: a request has a place while it is read and answered, and a turn before its decision."""

    def __init__(self) -> None:
        self._places = asyncio.Semaphore(PLACES)
        self._turns = asyncio.Lock()

    @asynccontextmanager
    async def place(self, scope: Scope) -> AsyncIterator[None]:
        """Waits for a place as long as the caller waits."""
        timeout_s = timeout_of(scope)
        try:
            async with asyncio.timeout(timeout_s):
                await self._places.acquire()
        except TimeoutError:
            raise RefusedRequest(429, f"other large requests took {timeout_s:g} s; try again") from None
        try:
            yield
        finally:
            self._places.release()

    async def turn(self) -> None:
        """Waits until every small body that has arrived is answered; what follows at once is decided alone."""
        async with self._turns:
            await asyncio.sleep(0)


def is_large(scope: Scope) -> bool:
    """Returns whether the header announces a large body; one without a length may become large."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return not value.isdigit() or int(value[:20]) >= LARGE_BYTES
    return True


def check_density(body: bytes) -> None:
    """Raises RefusedRequest for too many values; a comma in a text counts like one between values."""
    most = max(FREE_VALUES, len(body) // BYTES_PER_VALUE)
    if len(body) > most and (values := sum(map(body.count, (b",", b"[", b"{")))) > most:
        raise RefusedRequest(413, f"the body has about {values} values; one of {len(body)} bytes may have {most}")
