"""One listening socket: accepts up to a limit, bounds the handshake, ends overdue connections, and closes gracefully.

Law: a TCP connection counts against the limit from its accept, before its handshake, so that silent ones cannot
exhaust the process. Over the limit it is closed at accept rather than answered 503: that costs no handshake,
and the caller fails at once and may try another replica.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from functools import partial
from typing import Any, Protocol

from serving.address import bound_address
from serving.connection import Connection, Traffic
from serving.log import Log

_ACCEPTS_PER_WAKE_UP = 64
_TLS_CLOSE_S = 2.0
_REPORT_EVERY_S = 10.0


class ServerTls(Protocol):
    """The TLS of a listener. A process without TLS saves the memory of what implements it."""

    context: ssl.SSLContext

    async def watch(self, log: Log) -> None:
        """Follows the files that it has until cancelled."""


class HandshakeObserver(Protocol):
    """Is called with the IP address of each client, and its certificate, DER-encoded, or why no connection was made."""

    def succeeded(self, address: str, certificate: bytes | None) -> None: ...

    def failed(self, address: str, error: BaseException) -> None: ...


class Acceptor:
    def __init__(
        self,
        listening: socket.socket,
        traffic: Traffic,
        *,
        tls: ServerTls | None,
        handshakes: HandshakeObserver | None,
        log: Log,
    ) -> None:
        self.name = traffic.listener
        self.address = bound_address(listening)
        self._socket = listening
        self._traffic = traffic
        self._observer = handshakes
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._tls_arguments = _tls_arguments(tls, traffic.limits.handshake_s)
        self._handshakes: set[asyncio.Task[None]] = set()
        self._is_paused = False
        self._reported_at = float("-inf")
        self._sweeper = self._loop.create_task(self._sweep_forever(), name=f"enforce deadlines of {self.name}")

    # Accepting

    def start(self) -> None:
        self._loop.add_reader(self._socket, self._accept_waiting)

    def _accept_waiting(self) -> None:
        for _ in range(_ACCEPTS_PER_WAKE_UP):
            try:
                accepted, (address, *_) = self._socket.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause_accepting(error)
                return
            self._admit(accepted, address)

    def _pause_accepting(self, error: OSError) -> None:
        """Pauses where descriptors or memory ran out: the socket stays readable, so an immediate retry would spin."""
        self._loop.remove_reader(self._socket)
        self._is_paused = True
        self._count_early_end(f"cannot accept: {error.strerror}")

    def _admit(self, accepted: socket.socket, address: str) -> None:
        if len(self._traffic.admitted) >= self._traffic.limits.max_connections:
            accepted.close()
            self._count_early_end("closed at accept: the connection limit is reached")
            return
        accepted.settimeout(0)
        connection = Connection(self._traffic)
        self._traffic.admitted.add(connection)
        arrival = self._loop.create_task(self._connect(accepted, connection), name="accept a connection")
        self._handshakes.add(arrival)
        arrival.add_done_callback(partial(self._on_handshake_end, accepted, address, connection))

    async def _connect(self, accepted: socket.socket, connection: Connection) -> None:
        await self._loop.connect_accepted_socket(lambda: connection, accepted, **self._tls_arguments)

    def _on_handshake_end(
        self, accepted: socket.socket, address: str, connection: Connection, arrival: asyncio.Task[None]
    ) -> None:
        self._handshakes.discard(arrival)
        failure = asyncio.CancelledError() if arrival.cancelled() else arrival.exception()
        if failure is not None:
            accepted.close()
            # A connection that is cancelled while it is made gets no connection_lost call.
            self._traffic.forget(connection)
            self._count_failed_handshake(failure)
        if self._observer is not None:
            _report(self._observer, address, connection, failure)

    def _count_failed_handshake(self, failure: BaseException) -> None:
        if isinstance(failure, ssl.SSLError):
            self._count_early_end(f"handshake failed: {failure.reason or failure}")
        elif isinstance(failure, ConnectionAbortedError):
            self._count_early_end("handshake not complete in time")
        elif not isinstance(failure, asyncio.CancelledError | ConnectionResetError):  # Probes open and reset.
            self._count_early_end(f"connection not made: {failure!r}")

    # Deadlines

    async def _sweep_forever(self) -> None:
        while True:
            await asyncio.sleep(self._traffic.limits.sweep_every_s)
            self._sweep(self._loop.time())

    def _sweep(self, now: float) -> None:
        for connection in self._connections():
            connection.sweep(now)
        if self._is_paused:
            self._is_paused = False
            self.start()
        if now - self._reported_at > _REPORT_EVERY_S:
            self._report(now)

    def _connections(self) -> list[Connection]:
        return [connection for connection in self._traffic.connections if isinstance(connection, Connection)]

    def _count_early_end(self, reason: str) -> None:
        self._traffic.early_ends[reason] += 1

    def _report(self, now: float) -> None:
        """Logs connections that ended early, at most one line in ten seconds."""
        if self._traffic.early_ends:
            reasons = dict(self._traffic.early_ends)
            self._log.warning("connections ended early", listener=self.name, reasons=reasons)
            self._traffic.early_ends.clear()
            self._reported_at = now

    # Ending

    def drain(self) -> None:
        """Makes the next answer of every connection, also of new ones, the last one."""
        self._traffic.draining = True
        for connection in self._connections():
            connection.announce_end()

    async def close(self) -> None:
        """Closes the socket, and returns when every request that has begun is answered."""
        self._stop_accepting()
        for connection in self._connections():
            connection.shutdown()
        while self._traffic.connections:
            self._traffic.a_connection_ended.clear()
            await self._traffic.a_connection_ended.wait()
        if self._traffic.tasks:
            await asyncio.wait(self._traffic.tasks)

    def abort(self) -> int:
        """Closes everything now; returns the number of requests without an answer."""
        self._stop_accepting()
        connections = self._connections()
        for connection in connections:
            connection.transport.abort()
        for task in (self._sweeper, *self._traffic.tasks):
            task.cancel()
        self._report(self._loop.time())
        return sum(connection.is_answering for connection in connections)

    def _stop_accepting(self) -> None:
        self._is_paused = False
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()
        for arrival in self._handshakes:
            arrival.cancel()


def _report(observer: HandshakeObserver, address: str, connection: Connection, failure: BaseException | None) -> None:
    if failure is None:
        shown = connection.transport.get_extra_info("ssl_object")
        observer.succeeded(address, shown and shown.getpeercert(binary_form=True))
    else:
        observer.failed(address, failure)


def _tls_arguments(tls: ServerTls | None, handshake_s: float) -> dict[str, Any]:
    if tls is None:
        return {}
    return {"ssl": tls.context, "ssl_handshake_timeout": handshake_s, "ssl_shutdown_timeout": _TLS_CLOSE_S}
