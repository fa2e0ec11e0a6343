from __future__ import annotations

from pathlib import Path

from serving.client_limits import ClientLimits
from serving.tls import ReloadingContext
from tests.serving.authority import Authority, write_pair
from tests.serving.conversation import Client, Echo, Server, server, trusting

TWO = ClientLimits(max_connections=2)


async def is_refused(client: Client) -> bool:
    """An idle connection that was admitted says nothing and stays open, so ask it something."""
    try:
        return (await client.ask()).status != 200
    except (EOFError, ConnectionError):
        return True


async def test_a_connection_over_the_limit_is_closed_at_accept_and_the_others_continue() -> None:
    async with server(Echo(), limits=TWO) as running:
        inside = [await running.connect(), await running.connect()]
        assert await is_refused(await running.connect())
        assert [(await client.ask()).status for client in inside] == [200, 200]
    assert "closed at accept: the connection limit is reached" in running.log.getvalue()


async def test_a_new_connection_is_accepted_after_another_one_ended() -> None:
    async with server(Echo(), limits=TWO) as running:
        first, second = await running.connect(), await running.connect()
        await second.ask()
        first.writer.close()
        await admitted(running)


async def admitted(running: Server) -> None:
    while await is_refused(await running.connect()):
        pass


async def test_connections_count_before_their_handshake(tmp_path: Path) -> None:
    authority = Authority()
    tls = ReloadingContext(write_pair(tmp_path, authority.issue()))
    async with server(Echo(), tls=tls, limits=TWO) as running:
        await running.connect()
        await running.connect()
        third = await running.connect()
        assert await third.until_closed() == b""
        for silent in running.clients:
            silent.close()
        await until_welcome(running, authority)


async def until_welcome(running: Server, authority: Authority) -> None:
    while True:
        try:
            client = await running.connect(trusting(authority))
        except (ConnectionError, OSError):
            continue
        assert (await client.ask()).status == 200
        return
