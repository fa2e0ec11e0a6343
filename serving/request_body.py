"""Reads the whole body of a request within a deadline, and answers it while the caller waits; for raw ASGI
applications on a hot path.
"""

from __future__ import annotations

import asyncio
import re
import types
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, Final, TypeVar

from starlette.types import Receive, Scope, Send

JSON: Final = b"application/json"
_TIMEOUT: Final = re.compile(rb"(?:^|&)timeout=([0-9]{1,3}(?:\.[0-9]{1,9})?)s(?:&|$)")
_USED: Final = 0.8
"""The part of a time-out in which an answer is prepared; the rest is for the ways to and from the caller."""

_LONGEST_READ_S: Final = 30.0
"""The longest time that the API server waits for a webhook, and the scheduler for an extender."""

_T = TypeVar("_T")


class RefusedRequest(Exception):
    """The request cannot be read; has a status and a sentence for the caller."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def check_head(scope: Scope, most_bytes: int) -> None:
    if scope["method"] != "POST":
        raise RefusedRequest(405, f"use POST, not {scope['method']}")
    is_typed = False
    for name, value in scope["headers"]:
        if name == b"content-type":
            is_typed = True
            if value.split(b";", 1)[0].strip().lower() != JSON:
                raise RefusedRequest(415, f"send Content-Type: application/json, not {value.decode('latin-1')[:80]!r}")
        elif name == b"content-length" and value.isdigit() and int(value[:20]) > most_bytes:
            raise _too_large(most_bytes)
    if not is_typed:
        raise RefusedRequest(415, "send Content-Type: application/json")


async def body_in_time(scope: Scope, receive: Receive, most_bytes: int) -> bytes:
    """Reads the body; one that has arrived, as nearly all have, starts no timer, which costs more than a rule."""
    reading = _body(receive, most_bytes)
    try:
        waiting_for = reading.send(None)
    except StopIteration as whole:
        return bytes(whole.value)
    timeout_s = timeout_of(scope)
    try:
        async with asyncio.timeout(timeout_s):
            return await _rest(reading, waiting_for)
    except TimeoutError:
        raise RefusedRequest(408, f"the body was not complete within {timeout_s:g} s") from None


@types.coroutine
def _rest(reading: Coroutine[Any, Any, bytes], waiting_for: Any) -> Generator[Any, Any, bytes]:
    """Continues a coroutine that waits for `waiting_for`."""
    yield waiting_for
    return (yield from reading.__await__())


def timeout_of(scope: Scope) -> float:
    """Returns how long the caller waits."""
    wanted = _TIMEOUT.search(scope.get("query_string", b""))
    return min(float(wanted[1]), _LONGEST_READ_S) if wanted else _LONGEST_READ_S


def answer_by(scope: Scope, arrived: float) -> float:
    """Returns when the answer to a request must be sent."""
    return arrived + _USED * timeout_of(scope)


async def while_connected(receive: Receive, work: Awaitable[_T]) -> _T:
    """Awaits work for a request whose body has been read, and cancels it when the caller hangs up.

    Work that does not have to wait starts nothing.
    """
    loop = asyncio.get_running_loop()
    watching: list[asyncio.Task[None]] = []

    async def hang_up() -> None:
        await receive()
        limit.reschedule(loop.time())

    try:
        async with asyncio.timeout(None) as limit:
            start = loop.call_soon(lambda: watching.append(loop.create_task(hang_up(), name="watch the caller")))
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        raise RefusedRequest(400, "the caller disconnected before the answer") from None
    finally:
        start.cancel()
        for each in watching:
            each.cancel()


async def _body(receive: Receive, most_bytes: int) -> bytes:
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedRequest(400, "the caller disconnected before the body was complete")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most_bytes:
            raise _too_large(most_bytes)
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_large(most_bytes: int) -> RefusedRequest:
    return RefusedRequest(413, f"the body is larger than {most_bytes} bytes")


async def respond(send: Send, status: int, content_type: bytes, body: bytes) -> None:
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    if status == 405:
        headers.append((b"allow", b"POST"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
