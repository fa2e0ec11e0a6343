"""Calls on kept-alive connections: each sends its next request when the last one is answered, or at a steady pace."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from .connection import Answer, Connection
from .servers import Server

CONNECTIONS: Final = 8

Request = Callable[[int], bytes]
"""The bytes of the call with this number."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a number of calls took: seconds of each, sorted, and CPU seconds of the server in all."""

    taken: list[float]
    cpu_s: float

    def at(self, quantile: float) -> float:
        return self.taken[min(len(self.taken) - 1, int(len(self.taken) * quantile))]


async def drive(server: Server, request: Request, calls: int, *, first: int = 0, a_second: int | None = None) -> Load:
    """Everything must be allowed. Connections are opened before and their handshakes not counted.

    Calls come at the pace of `a_second` on all connections together, or as fast as they are answered.
    """
    tls = server.tls()
    connections = [await Connection.open(server.port, tls) for _ in range(CONNECTIONS)]
    gc.collect()
    gc.disable()
    numbers = _Numbers(first, first + calls, a_second)
    try:
        before = server.cpu_s()
        taken = await asyncio.gather(*(_calls(server, each, request, numbers=numbers) for each in connections))
        return Load(sorted(itertools.chain.from_iterable(taken)), server.cpu_s() - before)
    finally:
        gc.enable()


class _Numbers:
    """The numbers of the calls, which the connections share; at a pace, each is handed out when it is due."""

    def __init__(self, first: int, end: int, a_second: int | None) -> None:
        self._numbers = iter(range(first, end))
        self._first = first
        self._pause_s = 1 / a_second if a_second else 0.0
        self._began = asyncio.get_running_loop().time()

    async def __aiter__(self) -> AsyncIterator[int]:
        for number in self._numbers:
            due = self._began + (number - self._first) * self._pause_s
            if self._pause_s and (early := due - asyncio.get_running_loop().time()) > 0:
                await asyncio.sleep(early)
            yield number


async def _calls(server: Server, connection: Connection, request: Request, *, numbers: _Numbers) -> list[float]:
    taken: list[float] = []
    async for number in numbers:
        if not connection.is_open:
            await connection.end()
            connection = await Connection.open(server.port, server.tls())
        answer = await connection.ask(server.addressed(request(number)))
        _require_allowed(answer)
        taken.append(answer.seconds)
    await connection.end()
    return taken


def _require_allowed(answer: Answer) -> None:
    if answer.status != 200 or b'"allowed":true' not in answer.body:
        raise RuntimeError(f"a good review was not allowed: {answer.status} {answer.body[:500]!r}")
