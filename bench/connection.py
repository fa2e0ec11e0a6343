"""The client's side of one kept-alive connection, as cheap as it can be: prebuilt bytes out, a status and a time in."""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from typing import Final, NamedTuple, Self, cast

_BLANK: Final = b"\r\n\r\n"
_STATUS: Final = slice(9, 12)  # of "HTTP/1.1 200 OK"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)
_CLOSES: Final = re.compile(rb"\r\nconnection: *close\r\n", re.IGNORECASE)


class Answer(NamedTuple):
    status: int
    body: bytes
    seconds: float


class Dropped(Exception):
    """The connection ended before the answer."""


class Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._head = b""
        self._wanted: int | None = None  # bytes of the whole answer, once its head is there
        self._awaited: asyncio.Future[tuple[bytes, bytes]] | None = None
        self._has_body = True
        self._transport: asyncio.Transport | None = None
        self._lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_open = True

    @classmethod
    async def open(cls, port: int, tls: ssl.SSLContext | None) -> Self:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, "127.0.0.1", port, ssl=tls)
        return connection

    async def ask(self, request: bytes) -> Answer:
        assert self._transport is not None
        self._awaited = asyncio.get_running_loop().create_future()
        self._has_body = not request.startswith(b"HEAD ")
        began = time.perf_counter()
        self._transport.write(request)
        head, body = await self._awaited
        seconds = time.perf_counter() - began
        if _CLOSES.search(head):
            self.close()
        return Answer(int(head[_STATUS]), body, seconds)

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.close()

    async def end(self) -> None:
        """Returns when both sides have closed the connection."""
        self.close()
        await self._lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._wanted is None and (end := self._received.find(_BLANK)) >= 0:
            self._head = bytes(self._received[: end + 2])
            self._wanted = end + len(_BLANK) + self._length(self._head)
        if self._wanted is not None and len(self._received) >= self._wanted:
            body = bytes(self._received[len(self._head) + 2 :])
            self._received, self._wanted = bytearray(), None
            if self._awaited is not None and not self._awaited.done():
                self._awaited.set_result((self._head, body))

    def _length(self, head: bytes) -> int:
        found = _LENGTH.search(head)
        return int(found[1]) if found and self._has_body else 0

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._lost.set_result(None)
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_exception(Dropped(str(exc or "closed by the server")))


def post(path: str, body: bytes) -> bytes:
    """A request in the form in which an API server writes it."""
    head = (
        f"POST {path}?timeout=10s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: kube-apiserver-admission\r\n"
        f"Content-Length: {len(body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
        f"Accept-Encoding: gzip\r\n\r\n"
    )
    return head.encode() + body
