"""Sends requests to an ASGI application, without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any, NamedTuple

from starlette.types import ASGIApp

JSON = ("content-type", "application/json")
_SILENCE: dict[str, Any] = {}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def ask(
    app: ASGIApp,
    path: str,
    body: bytes | Iterable[bytes | None] = b"",
    *,
    method: str = "POST",
    headers: Iterable[tuple[str, str]] = (JSON,),
    query: bytes = b"",
) -> Answer:
    """Sends `body` whole, or in parts; after a part that is None the caller sends nothing more."""
    return asyncio.run(_ask(app, _scope(path, method, headers, query), _messages(body)))


def hung_up(app: ASGIApp, path: str) -> Answer:
    """Sends one part, then disconnects."""
    return asyncio.run(_ask(app, _scope(path, "POST", (JSON,), b""), _messages([b"{", ConnectionError])))


def hung_up_after(app: ASGIApp, path: str, body: bytes) -> Answer:
    """Sends all, then disconnects instead of waiting for the answer; returns what would have been sent."""
    messages = [{"type": "http.request", "body": body, "more_body": False}, {"type": "http.disconnect"}]
    return asyncio.run(_ask(app, _scope(path, "POST", (JSON,), b"timeout=5s"), iter(messages)))


def _scope(path: str, method: str, headers: Iterable[tuple[str, str]], query: bytes) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query,
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }


async def _ask(app: ASGIApp, scope: dict[str, Any], messages: Iterator[Any]) -> Answer:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        message: MutableMapping[str, Any] = next(messages, _SILENCE)
        if message is _SILENCE:
            await asyncio.Event().wait()
        return message

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *rest = sent
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], headers, b"".join(message["body"] for message in rest))


def _messages(body: bytes | Iterable[Any]) -> Iterator[Any]:
    if isinstance(body, bytes):
        yield {"type": "http.request", "body": body, "more_body": False}
        return
    for part in body:
        yield _SILENCE if part is None else _part(part)
    yield {"type": "http.request", "more_body": False}


def _part(part: Any) -> Any:
    gone = {"type": "http.disconnect"}
    return gone if part is ConnectionError else {"type": "http.request", "body": part, "more_body": True}
