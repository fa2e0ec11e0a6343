from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from serving.errors import CannotServeError
from serving.listener import StopTimings
from serving.tls import ReloadingContext
from tests.serving.authority import Authority, write_pair
from tests.serving.conversation import Client, Echo, Server, answer, post, server
from tests.waiting import until


class Gate:
    """Answers a POST when the test lets it, and a GET at once."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self, scope: Scope, _: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        if scope["method"] == "POST":
            self.entered.set()
            await self.opened.wait()
        await answer(send, b"done")


async def until_nobody_listens(running: Server) -> None:
    while True:
        try:
            await running.connect()
        except ConnectionError:
            return


async def test_a_request_in_flight_is_finished_and_says_that_it_was_the_last() -> None:
    gate = Gate()
    async with server(gate) as running:
        client = await running.connect()
        client.send(post(b""))
        await gate.entered.wait()
        running.lifecycle.stop()
        await until_nobody_listens(running)
        gate.opened.set()
        last = await client.answer()
        assert (last.body, last.headers["connection"]) == (b"done", "close")


async def test_a_request_half_sent_is_finished() -> None:
    async with server(Echo()) as running:
        client = await running.connect()
        client.send(post(b"half", length=8))
        first = await running.connect()
        await first.ask()  # So the half request has been read, too.
        running.lifecycle.stop()
        await until_nobody_listens(running)
        assert (await client.ask(b"more")).body == b"halfmore"


async def test_a_request_that_was_answered_before_it_was_sent_does_not_delay_the_end() -> None:
    async def hasty(scope: Scope, _: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await answer(send, b"no need")

    async with server(hasty, stopping=StopTimings(grace_s=0, drain_s=0, finish_s=60)) as running:
        client = await running.connect()
        assert (await client.ask(post(b"half", length=8))).body == b"no need"
        running.lifecycle.stop()
        async with asyncio.timeout(5):
            await running.serving


async def test_an_idle_connection_is_closed_silently() -> None:
    async with server(Echo()) as running:
        client = await running.connect()
        await client.ask()
        running.lifecycle.stop()
        assert await client.until_closed() == b""


async def test_requests_are_served_normally_in_the_grace_time() -> None:
    async with server(Echo(), stopping=StopTimings(grace_s=60)) as running:
        old = await running.connect()
        await old.ask()
        running.lifecycle.stop()
        for client in (old, await running.connect(), old):
            assert "connection" not in (await client.ask()).headers
        await cancelled(running)


async def cancelled(running: Server) -> None:
    running.serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running.serving
    running.serving = asyncio.create_task(asyncio.sleep(0))


async def test_an_unfinished_handshake_does_not_outlive_the_end(tmp_path: Path) -> None:
    tls = ReloadingContext(write_pair(tmp_path, Authority().issue()))
    async with server(Echo(), tls=tls) as running:
        silent = await running.connect()
        running.lifecycle.stop()
        async with asyncio.timeout(5):
            assert await silent.until_closed() == b""


async def test_while_draining_every_answer_closes_its_connection_and_new_ones_are_served() -> None:
    async with server(Echo(), stopping=StopTimings(grace_s=0, drain_s=0.3)) as running:
        old = await running.connect()
        await old.ask()
        running.lifecycle.stop()
        await until_draining(running)
        assert (await old.ask()).headers["connection"] == "close"
        new = await running.connect()
        assert (await new.ask()).headers["connection"] == "close"
        assert not running.serving.done()


async def test_a_request_in_flight_when_draining_begins_closes_its_connection() -> None:
    gate = Gate()
    async with server(gate, stopping=StopTimings(grace_s=0, drain_s=0.3)) as running:
        client = await running.connect()
        client.send(post(b""))
        await gate.entered.wait()
        running.lifecycle.stop()
        await until_draining(running)
        gate.opened.set()
        assert (await client.answer()).headers["connection"] == "close"
        assert not running.serving.done()


async def until_draining(running: Server) -> None:
    while "connection" not in (await (await running.connect()).ask()).headers:
        pass


async def test_a_request_that_never_ends_is_cut_off_and_counted() -> None:
    gate = Gate()
    async with server(gate, stopping=StopTimings(grace_s=0, drain_s=0, finish_s=0.1)) as running:
        client = await running.connect()
        client.send(post(b""))
        await gate.entered.wait()
        running.lifecycle.stop()
        assert await client.until_closed() == b""
        await running.serving
    assert [event["requests"] for event in running.events() if "requests" in event] == [1]


async def test_cancelling_ends_at_once() -> None:
    gate = Gate()
    async with server(gate, stopping=StopTimings(grace_s=60)) as running:
        client = await running.connect()
        client.send(post(b""))
        await gate.entered.wait()
        await cancelled(running)
        assert await client.until_closed() == b""


class Balancer:
    """What a Service does: sends new connections to replicas that were ready a moment ago."""

    def __init__(self, *replicas: Server) -> None:
        self._replicas = replicas
        self._ready = list(replicas)
        self.connections_to_second = 0

    async def follow_readiness(self) -> None:
        while True:
            ready = [replica for replica in self._replicas if not replica.lifecycle.stopping]
            await asyncio.sleep(0.05)  # The time that the news takes.
            self._ready = ready

    async def connect(self, number: int) -> Client:
        replica = self._ready[number % len(self._ready)]
        self.connections_to_second += replica is self._replicas[1]
        return await replica.connect()


async def call_again_and_again(balancer: Balancer, calls: list[bytes], stop: asyncio.Event) -> None:
    number = 0
    while not stop.is_set():
        client = await balancer.connect(number)
        number += 1
        may_go_on = True
        while may_go_on and not stop.is_set():
            body = b"call %d" % len(calls)
            reply = await client.ask(post(body))  # A closed connection raises, and fails the test.
            assert reply.body == body
            calls.append(body)
            may_go_on = reply.headers.get("connection") != "close"
        client.close()


async def test_a_rolling_restart_fails_no_call() -> None:
    rolling = StopTimings(grace_s=0.2, drain_s=0.1, finish_s=5)
    calls: list[bytes] = []
    async with server(Echo(), stopping=rolling) as first, server(Echo()) as second:
        balancer, stop = Balancer(first, second), asyncio.Event()
        following = asyncio.create_task(balancer.follow_readiness())
        async with asyncio.TaskGroup() as clients:
            for _ in range(4):
                clients.create_task(call_again_and_again(balancer, calls, stop))
            await until(lambda: len(calls) > 20, what="calls before the restart")
            first.lifecycle.stop()
            await first.serving
            during = len(calls)
            await until(lambda: len(calls) > during + 20, what="calls after the restart")
            stop.set()
        following.cancel()
        assert balancer.connections_to_second >= 4


async def test_the_application_is_started_before_and_ended_after_serving() -> None:
    happened: list[str] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        happened.append("started")
        yield
        happened.append("ended")

    app = FastAPI(lifespan=lifespan)

    @app.get("/")
    async def served() -> None:
        happened.append("served")

    async with server(app) as running:
        await (await running.connect()).ask()
    assert happened == ["started", "served", "ended"]


async def test_an_application_that_cannot_start_keeps_the_process_from_serving() -> None:
    async def broken(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no such cluster"})

    with pytest.raises(CannotServeError, match="listener test: its application failed to start"):
        async with server(broken):
            pass
