"""Single calls to the API server, reads and writes, over a small pool of connections.

Invariant: a call that may change something is sent once. Without an answer the caller gets NoAnswerError, and decides.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, MutableSequence, MutableSet
from types import MappingProxyType
from typing import Final

from halfcard.exit_codes import UnreadableError

from .access import Access, AccessError
from .impersonation import Header
from .kept_connection import Answer, KeptConnection, encoded_request, open_connection

__all__ = ["Answer", "ApiCalls", "NoAnswerError", "NotSentError"]

TIMEOUT_S: Final = 10.0
MERGE_PATCH: Final = "application/merge-patch+json"

_CONNECTIONS: Final = 16
_IDLE_S: Final = 30.0
"""A proxy between this process and the server may have dropped a connection that was idle for longer."""
_LONGEST_S: Final = 300.0
"""The longest life of a connection: a new one reads CAs and client certificates that were renewed on disk."""

_NOT_IN_PATH: Final = re.compile(r"[^\x21-\x7e]")


class NoAnswerError(UnreadableError):
    """The request may or may not have been carried out."""


class NotSentError(NoAnswerError):
    """The request cannot have been carried out: the server was not reached."""


class ApiCalls:
    """Calls for one event loop, each with `headers`. A refusal is returned as an answer; the caller must quote `path`.

    Every call may raise NoAnswerError, and ValueError for an invalid path.
    """

    def __init__(
        self, access: Access, connections: int = _CONNECTIONS, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._access = access
        self._headers = headers
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
        """Closes all connections; calls that still wait raise NoAnswerError."""
        _drop(self._busy)
        _drop(self._idle)

    async def _call(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json", *, timeout_s: float
    ) -> Answer:
        if _NOT_IN_PATH.search(path):
            raise ValueError(f"got the path {path!r}; quote it")
        asked_at = time.monotonic()
        answer = await self._answer(f"{method} {path}", body, content_type, timeout_s)
        if self._access.logs_in_again(answer.status, asked_at):
            _drop(self._idle)  # they may have been opened with the refused certificate
            answer = await self._answer(f"{method} {path}", body, content_type, timeout_s)
        return answer

    async def _answer(self, call: str, body: bytes, content_type: str, timeout_s: float) -> Answer:
        try:
            headers = await self._log_in()
            async with asyncio.timeout(timeout_s), self._turns:
                request = encoded_request(self._access, call, [*headers, *self._headers.items()], body, content_type)
                return await self._send(request, once=not call.startswith("GET "))
        except (NotSentError, AccessError) as error:
            raise NotSentError(f"{call} was not sent: {error}") from None
        except TimeoutError:
            raise NoAnswerError(f"no answer to {call} within {timeout_s:g} s") from None
        except OSError as error:
            raise NoAnswerError(f"no answer to {call}: {error}") from None

    async def _log_in(self) -> list[Header]:
        """Returns the headers of the credentials, without a time limit where a login may wait for the user."""
        read = self._access.headers
        return read() if self._access.forget_login is None else await asyncio.to_thread(read)

    async def _send(self, request: bytes, *, once: bool) -> Answer:
        """Repeats a read on a new connection when a pooled one was dead."""
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
        """Returns the connection that was used last, so that unneeded ones become old and are closed."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and now - connection.used_at < _IDLE_S and now - connection.opened_at < _LONGEST_S:
                return connection
            connection.close()
        return None

    async def _connect(self) -> KeptConnection:
        try:
            return await open_connection(self._access)
        except OSError as error:
            raise NotSentError(str(error)) from None


def _drop(connections: MutableSequence[KeptConnection] | MutableSet[KeptConnection]) -> None:
    for connection in tuple(connections):
        connection.close()
    connections.clear()
