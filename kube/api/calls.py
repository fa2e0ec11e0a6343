"""Single calls to the API server, reads and writes, over a few kept connections.

Invariant: a call that may change something is sent once. If no answer arrives the caller is notified, and decides.
"""

from __future__ import annotations

import asyncio
import re
from typing import Final

from .access import Access, AccessError
from .kept_connection import Answer, KeptConnection

__all__ = ["Answer", "ApiCalls", "NoAnswerError", "NotSentError"]

TIMEOUT_S: Final = 10.0
MERGE_PATCH: Final = "application/merge-patch+json"

_CONNECTIONS: Final = 16
_IDLE_S: Final = 30.0
"""What is silent for longer may have been forgotten by something between us and the server."""
_LONGEST_S: Final = 300.0
"""Authorities and client certificates are renewed on disk; a new connection reads them."""

_UNSPEAKABLE: Final = re.compile(r"[^\x21-\x7e]")


class NoAnswerError(Exception):
    """The request may or may not have been carried out."""


class NotSentError(NoAnswerError):
    """The request cannot have been carried out: the server was not reached."""


class ApiCalls:
    """For one event loop. A refusal is an answer like any other; `path` is quoted by the caller.

    Every call raises NoAnswerError, and ValueError for a path that is none.
    """

    def __init__(self, access: Access, connections: int = _CONNECTIONS) -> None:
        self._access = access
        self._idle: list[KeptConnection] = []
        self._busy: set[KeptConnection] = set()
        self._turns = asyncio.Semaphore(connections)

    async def get(self, path: str, timeout_s: float = TIMEOUT_S) -> Answer:
        return await self._call("GET", path, timeout_s=timeout_s)

    async def post(self, path: str, body: bytes, timeout_s: float = TIMEOUT_S) -> Answer:
        return await self._call("POST", path, body, timeout_s=timeout_s)

    async def put(self, path: str, body: bytes, timeout_s: float = TIMEOUT_S) -> Answer:
        return await self._call("PUT", path, body, timeout_s=timeout_s)

    async def patch(
        self, path: str, body: bytes, content_type: str = MERGE_PATCH, timeout_s: float = TIMEOUT_S
    ) -> Answer:
        return await self._call("PATCH", path, body, content_type, timeout_s=timeout_s)

    async def delete(self, path: str, body: bytes = b"", timeout_s: float = TIMEOUT_S) -> Answer:
        return await self._call("DELETE", path, body, timeout_s=timeout_s)

    def close(self) -> None:
        """Calls that still wait end without an answer."""
        for connection in (*self._idle, *self._busy):
            connection.close()
        self._idle.clear()

    async def _call(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json", *, timeout_s: float
    ) -> Answer:
        if _UNSPEAKABLE.search(path):
            raise ValueError(f"got the path {path!r}; quote what stands in it")
        call = f"{method} {path}"
        try:
            async with asyncio.timeout(timeout_s), self._turns:
                request = self._request(call, body, content_type)
                return await self._send(request, once=method != "GET")
        except (NotSentError, AccessError) as error:
            raise NotSentError(f"{call} was not sent: {error}") from None
        except TimeoutError:
            raise NoAnswerError(f"no answer to {call} within {timeout_s:g} s") from None
        except OSError as error:
            raise NoAnswerError(f"no answer to {call}: {error}") from None

    async def _send(self, request: bytes, *, once: bool) -> Answer:
        """A kept connection may have died unnoticed: what changes nothing is then asked once more, on a new one."""
        connection = self._take()
        if connection is not None:
            try:
                return await self._ask(connection, request)
            except OSError:
                if once or connection.answer_begun:
                    raise
        return await self._ask(await self._connect(), request)

    async def _ask(self, connection: KeptConnection, request: bytes) -> Answer:
        self._busy.add(connection)
        try:
            answer = await connection.ask(request)
        except BaseException:
            connection.close()
            raise
        finally:
            self._busy.discard(connection)
        self._keep(connection)
        return answer

    def _keep(self, connection: KeptConnection) -> None:
        connection.used_at = asyncio.get_running_loop().time()
        if connection.usable:
            self._idle.append(connection)
        else:
            connection.close()

    def _take(self) -> KeptConnection | None:
        """The last used first, so that those we do not need grow old."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and now - connection.used_at < _IDLE_S and now - connection.opened_at < _LONGEST_S:
                return connection
            connection.close()
        return None

    async def _connect(self) -> KeptConnection:
        loop = asyncio.get_running_loop()
        try:
            tls = None if self._access.tls is None else await asyncio.to_thread(self._access.tls)
            _, connection = await loop.create_connection(
                lambda: KeptConnection(loop.time()), self._access.host, self._access.port, ssl=tls
            )
        except OSError as error:
            raise NotSentError(str(error)) from None
        return connection

    def _request(self, call: str, body: bytes, content_type: str) -> bytes:
        method, path = call.split(" ", 1)
        host = f"[{self._access.host}]" if ":" in self._access.host else self._access.host
        lines = [
            f"{method} {self._access.prefix}{path} HTTP/1.1",
            f"Host: {host}:{self._access.port}",
            *(f"{name}: {value}" for name, value in self._access.headers().items()),
        ]
        if body:
            lines.append(f"Content-Type: {content_type}")
        if method != "GET":
            lines.append(f"Content-Length: {len(body)}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
