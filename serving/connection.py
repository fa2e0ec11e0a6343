"""One HTTP/1.1 connection: uvicorn's protocol with deadlines, a header limit and a graceful end.

Law: the hot path only stores a few attributes. One sweep per listener, every second, reads them and closes overdue
connections; no request starts a timer.
"""

from __future__ import annotations

import asyncio
import http
from collections import Counter
from typing import Any, Final, cast

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from serving.client_limits import HEADER_TOO_LARGE, ClientLimits, Overdue, RequestPart, overdue

_INTERIM: Final = b"HTTP/1.1 100"
"""The client waits for it before it sends its body."""
_MOST_JOINED: Final = 16 * 2**10
"""Bytes of a TLS record; joining more would copy a large body for nothing."""


class Traffic(ServerState):
    """The shared state of a listener's connections."""

    def __init__(self, listener: str, limits: ClientLimits, *, config: Config, app_state: dict[str, Any]) -> None:
        super().__init__()
        self.listener = listener
        self.limits = limits
        self.config = config
        self.app_state = app_state
        self.draining = False
        self.admitted: set[Connection] = set()  # Since accept, so including those in their handshake.
        self.early_ends: Counter[str] = Counter()
        self.a_connection_ended = asyncio.Event()

    def forget(self, connection: Connection) -> None:
        self.admitted.discard(connection)
        self.connections.discard(connection)
        self.a_connection_ended.set()


class JoinedAnswer:
    """What an answer is written to: sends its head with the beginning of its body, in one TLS record instead of two."""

    __slots__ = ("_head", "_transport", "get_extra_info", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = b""
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info

    def write(self, data: bytes) -> None:
        if self._head is None or data.startswith(_INTERIM):
            self._transport.write(data)
        elif self._head:
            head, self._head = self._head, None
            for part in (head + data,) if len(data) <= _MOST_JOINED else (head, data):
                self._transport.write(part)
        else:
            self._head = data

    def flush(self) -> None:
        """Sends a head without a body."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self.flush()
        self._transport.close()


class Connection(HttpToolsProtocol):
    def __init__(self, traffic: Traffic) -> None:
        super().__init__(traffic.config, traffic, traffic.app_state)
        self.traffic = traffic
        self.limits = traffic.limits
        self.reading = RequestPart.NOTHING
        self.since = self.loop.time()
        self.requests = 0
        self.header_bytes = 0
        self.stalled_since: float | None = None

    # Requests

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.reading is RequestPart.HEADER:
            self._count_header_bytes(len(data))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.reading = RequestPart.HEADER
        self.since = self.loop.time()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.cycle.transport = cast(asyncio.Transport, JoinedAnswer(self.transport))
        self.reading = RequestPart.BODY
        self.since = self.loop.time()
        self.header_bytes = 0
        self.requests += 1
        if self.traffic.draining or self.requests >= self.limits.requests_per_connection:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self.reading = RequestPart.NOTHING
        self.since = self.loop.time()

    def _count_header_bytes(self, received: int) -> None:
        self.header_bytes += received
        if self.header_bytes > self.limits.max_header_bytes:
            self._end(HEADER_TOO_LARGE)

    # Answers

    def on_response_complete(self) -> None:
        """Replaces uvicorn's method, which starts a keep-alive timer after every answer."""
        self.traffic.total_requests += 1
        cast(JoinedAnswer, self.cycle.transport).flush()
        if self.transport.is_closing():
            return
        self.since = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)

    @property
    def is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    # End

    def sweep(self, now: float) -> None:
        if self.transport.is_closing() or self.flow.write_paused:
            self._abort_if_stalled(now)
            return
        self.stalled_since = None
        if self.flow.read_paused:
            return  # The application is the slow side.
        verdict = overdue(self.reading, now - self.since, answering=self.is_answering, limits=self.limits)
        if verdict is not None:
            self._end(verdict)

    def _abort_if_stalled(self, now: float) -> None:
        """Aborts a connection whose client reads neither the answer nor the close."""
        if self.stalled_since is None:
            self.stalled_since = now
        elif now - self.stalled_since > self.limits.write_s:
            self.traffic.early_ends["answer not read in time"] += 1
            self.transport.abort()

    def _end(self, verdict: Overdue) -> None:
        self.traffic.early_ends[verdict.reason] += 1
        answer_begun = self.reading is not RequestPart.HEADER and self.cycle.response_started
        if verdict.status is not None and not answer_begun:
            self.transport.write(_closing_answer(verdict.status, verdict.reason))
        self.transport.close()

    def announce_end(self) -> None:
        """Makes the answer that is being prepared the last one of this connection."""
        if self.is_answering and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        """Closes an idle connection now, any other after the current request."""
        if self.is_answering:
            self.cycle.keep_alive = False
        elif self.reading is not RequestPart.HEADER:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.traffic.forget(self)


def _closing_answer(status: int, reason: str) -> bytes:
    body = reason.encode("ascii") + b"\n"
    head = (
        f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n"
        f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
