"""A server under test on a free port, and a client that sends raw bytes over real TCP and TLS."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.acceptor import HandshakeObserver, ServerTls
from serving.address import Address
from serving.client_limits import ClientLimits
from serving.lifecycle import Lifecycle
from serving.listener import Listener, StopTimings, serve
from serving.log import Log
from tests.serving.authority import Authority

AT_ONCE = StopTimings(grace_s=0, drain_s=0, finish_s=5)
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


async def read_body(receive: Receive) -> bytes | None:
    """None if the client disconnected first."""
    body = b""
    while True:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += bytes(message["body"])
        if not message["more_body"]:
            return body


async def answer(send: Send, body: bytes) -> None:
    length = str(len(body)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Echo:
    """Answers with the received body, and stores the requests."""

    bodies: list[bytes | None] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        body = await read_body(receive)
        self.bodies.append(body)
        if body is not None:
            await answer(send, body)


@dataclass
class Server:
    address: Address
    lifecycle: Lifecycle
    serving: asyncio.Task[None]
    log: io.StringIO
    clients: list[Client] = field(default_factory=list)

    async def connect(self, tls: ssl.SSLContext | None = None, *, sni: str | None = "localhost") -> Client:
        name = sni if tls is not None else None
        port = self.address.port
        client = Client(*await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name))
        self.clients.append(client)
        return client

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.getvalue().splitlines()]


@asynccontextmanager
async def server(
    app: ASGIApp,
    *,
    tls: ServerTls | None = None,
    limits: ClientLimits | None = None,
    stopping: StopTimings = AT_ONCE,
    handshakes: HandshakeObserver | None = None,
) -> AsyncIterator[Server]:
    """Serves `app` until the block ends, and then checks that it stops."""
    lifecycle, written = Lifecycle(), io.StringIO()
    ready: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    listener = Listener("test", "127.0.0.1", 0, app, tls=tls, limits=limits or ClientLimits(), handshakes=handshakes)
    serving = asyncio.create_task(
        serve(
            [listener],
            lifecycle=lifecycle,
            log=Log(stream=written),
            stopping=stopping,
            on_ready=lambda addresses: ready.set_result(addresses["test"]),
        )
    )
    either: set[asyncio.Future[Any]] = {ready, serving}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    running = Server(ready.result(), lifecycle, serving, written)
    try:
        yield running
        lifecycle.stop()
        await running.serving
    finally:
        serving.cancel()
        for client in running.clients:
            client.close()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Client:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def ask(self, request: bytes = GET) -> Answer:
        self.send(request)
        return await self.answer()

    async def answer(self) -> Answer:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status_line, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await self.reader.readexactly(int(headers["content-length"]))
        return Answer(int(status_line.split()[1]), headers, body)

    async def until_closed(self) -> bytes:
        """Returns what arrives before the server closes the connection."""
        try:
            return await self.reader.read()
        except ConnectionResetError:
            return b""

    async def dribble(self, byte: bytes, *, every_s: float) -> bytes:
        """Sends single bytes until the server closes; returns its answer."""
        closed = asyncio.create_task(self.until_closed())
        while not closed.done():
            self.send(byte)
            await asyncio.wait([closed], timeout=every_s)
        return closed.result()

    def close(self) -> None:
        self.writer.transport.abort()

    def served_serial(self) -> int:
        der = self.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return x509.load_der_x509_certificate(der).serial_number


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.cert.decode())


def post(body: bytes, *, length: int | None = None) -> bytes:
    declared = len(body) if length is None else length
    return b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % declared + body
