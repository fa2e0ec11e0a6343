from __future__ import annotations

from serving.client_limits import ClientLimits
from tests.serving.conversation import GET, Echo, post, server


async def test_a_connection_is_kept_alive_and_its_nth_answer_closes_it() -> None:
    async with server(Echo(), limits=ClientLimits(requests_per_connection=3)) as running:
        client = await running.connect()
        connections = [(await client.ask()).headers.get("connection") for _ in range(3)]
        assert connections == [None, None, "close"]
        assert await client.until_closed() == b""


async def test_answers_do_not_name_the_server_software() -> None:
    async with server(Echo()) as running:
        client = await running.connect()
        assert set((await client.ask()).headers) == {"content-length"}


async def test_malformed_requests_are_answered_400_without_a_log_line_each() -> None:
    async with server(Echo()) as running:
        client = await running.connect()
        client.send(b"\x00\x01 nonsense\r\n\r\n")
        assert (await client.until_closed()).startswith(b"HTTP/1.1 400 ")
    assert [event["event"] for event in running.events()] == ["listening", "stopped"]


async def test_a_large_body_arrives_whole() -> None:
    body = b"0123456789" * 700_000
    async with server(Echo()) as running:
        client = await running.connect()
        assert (await client.ask(post(body))).body == body


async def test_a_client_may_wait_for_permission_to_send_its_body() -> None:
    async with server(Echo()) as running:
        client = await running.connect()
        client.send(b"POST / HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert (await client.ask(b"ok")).body == b"ok"


async def test_an_answer_to_head_has_no_body_and_the_connection_goes_on() -> None:
    async with server(Echo()) as running:
        client = await running.connect()
        client.send(GET.replace(b"GET", b"HEAD"))
        assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        assert (await client.ask(post(b"ok"))).body == b"ok"


async def test_http_1_0_is_answered_and_closed() -> None:
    async with server(Echo()) as running:
        client = await running.connect()
        client.send(GET.replace(b"1.1", b"1.0"))
        assert b"connection: close" in await client.until_closed()
