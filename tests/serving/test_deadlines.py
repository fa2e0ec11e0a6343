from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from serving.client_limits import ClientLimits
from serving.tls import ReloadingContext
from tests.serving.authority import Authority, write_pair
from tests.serving.conversation import GET, Echo, answer, post, read_body, server, trusting
from tests.waiting import until

QUICK = ClientLimits(handshake_s=0.2, header_s=0.2, body_s=0.2, write_s=0.2)
LATEST_S = 1.5  # A limit, a sweep and a slow machine; without a deadline the wait would have no end.

HALF_HEADER = b"GET / HTTP/1.1\r\nhost: x\r\n"


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def tls(authority: Authority, tmp_path: Path) -> ReloadingContext:
    return ReloadingContext(write_pair(tmp_path, authority.issue()))


@pytest.mark.parametrize("hello", [b"", b"\x16\x03\x01\x02\x00\x01"])
async def test_an_unfinished_handshake_is_closed(tls: ReloadingContext, hello: bytes) -> None:
    async with server(Echo(), tls=tls, limits=QUICK) as running:
        client = await running.connect()
        client.send(hello)
        async with asyncio.timeout(LATEST_S):
            assert await client.until_closed() == b""


@pytest.mark.parametrize("part", [b"G", HALF_HEADER, post(b"half", length=8)])
async def test_half_a_request_is_answered_408_and_closed(part: bytes) -> None:
    async with server(Echo(), limits=QUICK) as running:
        client = await running.connect()
        client.send(part)
        async with asyncio.timeout(LATEST_S):
            said = await client.until_closed()
        assert said.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert b"connection: close" in said


@pytest.mark.parametrize(("begin", "byte"), [(HALF_HEADER + b"x-name: ", b"a"), (post(b"", length=10**6), b"b")])
async def test_single_bytes_do_not_extend_the_deadline(begin: bytes, byte: bytes) -> None:
    async with server(Echo(), limits=QUICK) as running:
        client = await running.connect()
        client.send(begin)
        async with asyncio.timeout(LATEST_S):
            await client.dribble(byte, every_s=0.02)


async def test_an_application_is_notified_that_the_body_is_incomplete() -> None:
    echo = Echo()
    async with server(echo, limits=QUICK) as running:
        client = await running.connect()
        client.send(post(b"half", length=8))
        await client.until_closed()
        await until(lambda: echo.bodies == [None], what="the application sees the disconnect")


async def test_a_slow_application_does_not_count_against_the_client() -> None:
    may_read = asyncio.Event()

    async def late_reader(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await may_read.wait()
        await answer(send, b"%d" % len(await read_body(receive) or b""))

    async with server(late_reader, limits=QUICK) as running:
        client, slow = await running.connect(), await running.connect()
        client.send(post(b"x" * 1_000_000))
        slow.send(HALF_HEADER)
        await slow.until_closed()  # So the deadlines have passed.
        may_read.set()
        assert (await client.answer()).body == b"1000000"


async def test_a_connection_opened_in_advance_outlives_the_request_deadlines(
    authority: Authority, tls: ReloadingContext
) -> None:
    async with server(Echo(), tls=tls, limits=QUICK) as running:
        early = await running.connect(trusting(authority))
        slow = await running.connect(trusting(authority))
        slow.send(HALF_HEADER)
        await slow.until_closed()  # So the deadlines have passed.
        assert (await early.ask()).status == 200


async def test_a_connection_between_two_requests_is_idle_not_slow() -> None:
    async with server(Echo(), limits=QUICK) as running:
        client, slow = await running.connect(), await running.connect()
        await client.ask(post(b"one"))
        slow.send(HALF_HEADER)
        await slow.until_closed()
        assert (await client.ask(post(b"two"))).body == b"two"


async def test_an_idle_connection_is_closed_silently_after_the_keep_alive_time() -> None:
    async with server(Echo(), limits=ClientLimits(keep_alive_s=0.2)) as running:
        client = await running.connect()
        await client.ask()
        async with asyncio.timeout(LATEST_S):
            assert await client.until_closed() == b""


async def test_an_application_may_take_longer_than_any_client() -> None:
    async def slow(scope: Scope, _: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await asyncio.sleep(0.5)  # The behaviour under test, not a wait for something.
        await answer(send, b"late")

    async with server(slow, limits=ClientLimits(header_s=0.1, body_s=0.1, keep_alive_s=0.1)) as running:
        client = await running.connect()
        assert (await client.ask()).body == b"late"


async def test_a_client_that_does_not_read_its_answer_is_disconnected() -> None:
    ended = asyncio.Event()

    async def huge(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await answer(send, b"x" * 50_000_000)
        while (await receive())["type"] != "http.disconnect":
            pass
        ended.set()

    async with server(huge, limits=QUICK) as running:
        client = await running.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send(GET)
        async with asyncio.timeout(LATEST_S):
            await ended.wait()


async def test_an_endless_header_is_answered_431() -> None:
    async with server(Echo(), limits=ClientLimits(max_header_bytes=2000)) as running:
        client = await running.connect()
        client.send(HALF_HEADER)
        client.send(b"x-name: " + b"a" * 2000)
        assert b" 431 " in await client.until_closed()


async def test_a_request_that_cannot_be_answered_has_no_effect() -> None:
    echo = Echo()
    async with server(echo, limits=QUICK) as running:
        client = await running.connect()
        client.send(HALF_HEADER)
        await client.reader.readuntil(b"\r\n\r\n")
        client.send(b"\r\n")
        await client.until_closed()
    assert echo.bodies == []


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with server(Echo(), limits=QUICK) as running:
        client = await running.connect()
        client.send(post(b"one") + post(b"two") + post(b"three"))
        assert [(await client.answer()).body for _ in range(3)] == [b"one", b"two", b"three"]


async def test_a_connection_continues_after_pipelined_requests() -> None:
    async def quick(scope: Scope, _: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await answer(send, b"ok")

    async with server(quick, limits=QUICK) as running:
        client = await running.connect()
        client.send(GET + GET)
        assert [(await client.answer()).body for _ in range(2)] == [b"ok", b"ok"]
        assert (await client.ask()).body == b"ok"


async def test_misbehaving_clients_are_counted_not_listed_in_the_log() -> None:
    async with server(Echo(), limits=QUICK) as running:
        clients = [await running.connect() for _ in range(20)]
        for client in clients:
            client.send(HALF_HEADER)
        for client in clients:
            await client.until_closed()
    lines = [event for event in running.events() if event["event"] == "connections ended early"]
    assert sum(line["reasons"]["request header not complete in time"] for line in lines) == 20
    assert len(lines) <= 2  # One at once, and one at the end for the rest.
