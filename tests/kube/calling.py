"""Calls to a server on this machine, with one event loop per test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kube.api.access import Access
from kube.api.calls import ApiCalls

T = TypeVar("T")


def asked(port: int, ask: Callable[[ApiCalls], Awaitable[T]]) -> T:
    async def run() -> T:
        calls = ApiCalls(Access("127.0.0.1", port))
        try:
            return await ask(calls)
        finally:
            calls.close()
            await asyncio.sleep(0)  # the loop closes what has been asked to

    return asyncio.run(run())
