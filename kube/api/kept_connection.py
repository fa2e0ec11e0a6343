"""A persistent HTTP connection to the API server on the event loop: one request at a time, each with its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast

import httptools
import msgspec

from .access import Access
from .impersonation import Header

_TUNNEL_TIMEOUT_S: Final = 10.0
_CLOSED: Final = "the API server closed the connection before it answered"


class _Status(msgspec.Struct):
    message: str = ""


class Answer(NamedTuple):
    status: int
    body: bytes

    def refusal(self) -> str:
        """Returns status and message, for a log or a sentence."""
        return f"{self.status} {self.message()}"

    def message(self) -> str:
        """Returns the API server's message of a refusal; empty where the body has none."""
        try:
            return msgspec.json.decode(self.body, type=_Status).message
        except msgspec.MsgspecError:
            return ""


class KeptConnection(asyncio.Protocol):
    """A connection created by the event loop; httptools calls the methods that begin with `on_`.

    Attributes:
        usable: whether another request may be sent.
        answer_begun: whether a byte of the answer has arrived.
        opened_at: loop time, like `used_at`.
    """

    def __init__(self, now: float) -> None:
        self.usable = True
        self.answer_begun = False
        self.opened_at = self.used_at = now
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Answer] | None = None

    async def ask(self, request: bytes) -> Answer:
        """Sends a request and waits for its answer; the connection serves one request at a time.

        Raises:
            ConnectionError: there is no answer, or none that is HTTP.
        """
        assert self._transport is not None  # noqa: S101  (the loop connects before it hands us out)
        self._answer = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self.answer_begun = False
        self._transport.write(request)
        try:
            return await self._answer
        finally:
            self._answer = None

    def close(self) -> None:
        """Closes also in the middle of an answer, so that its rest is never taken for the next answer."""
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    # What the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # a socket's always is; uvloop's does not inherit from it

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            return self.close()  # no request was sent
        self.answer_begun = True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._end(ConnectionError(f"the API server's answer is no HTTP: {error}"))
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc if isinstance(exc, OSError) else ConnectionError(_CLOSED))

    def _end(self, error: OSError) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # Callbacks of the parser

    def on_body(self, part: bytes) -> None:
        self._body.append(part)

    def on_message_complete(self) -> None:
        if self._answer is None or self._parser.get_status_code() < 200:
            return
        first = not self._answer.done()
        self.usable = self.usable and first and self._parser.should_keep_alive()
        if first:
            self._answer.set_result(Answer(self._parser.get_status_code(), b"".join(self._body)))


async def open_connection(access: Access) -> KeptConnection:
    """Raises OSError or AccessError if there is no connection."""
    loop = asyncio.get_running_loop()
    tls = None if access.tls is None else await asyncio.to_thread(access.tls)
    name = access.certified_name if tls else None
    if access.proxy is None:
        where: dict[str, Any] = {"host": access.host, "port": access.port}
    else:
        opened = await asyncio.to_thread(access.open_socket, _TUNNEL_TIMEOUT_S)
        opened.settimeout(0)
        where = {"sock": opened}
    _, connection = await loop.create_connection(
        lambda: KeptConnection(loop.time()), ssl=tls, server_hostname=name, **where
    )
    return connection


def encoded_request(access: Access, call: str, headers: Iterable[Header], body: bytes, content_type: str) -> bytes:
    method, path = call.split(" ", 1)
    host = f"[{access.host}]" if ":" in access.host else access.host
    lines = [
        f"{method} {access.prefix}{path} HTTP/1.1",
        f"Host: {host}:{access.port}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    if body:
        lines.append(f"Content-Type: {content_type}")
    if method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
