"""Work for a caller ends when the caller hangs up, and nothing is started for work that does not wait."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from serving.request_body import RefusedRequest, answer_by, while_connected
from serving.tls import ReloadingContext
from tests.serving.authority import Authority, write_pair
from tests.serving.conversation import answer, post, read_body, server, trusting


class Caller:
    """A caller of whom nothing is heard until it hangs up."""

    def __init__(self) -> None:
        self.asked = 0
        self.gone = asyncio.Event()

    async def __call__(self) -> dict[str, Any]:
        self.asked += 1
        await self.gone.wait()
        return {"type": "http.disconnect"}


def watches() -> bool:
    return any(task.get_name() == "watch the caller" for task in asyncio.all_tasks())


async def test_work_is_cancelled_when_the_caller_hangs_up() -> None:
    caller, ended = Caller(), asyncio.Event()

    async def work() -> None:
        asyncio.get_running_loop().call_soon(caller.gone.set)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(RefusedRequest, match="disconnected before the answer"):
        await while_connected(caller, work())
    assert ended.is_set()


async def test_the_server_notices_a_client_that_closes_its_connection_before_the_answer(tmp_path: Path) -> None:
    authority, ended = Authority(), asyncio.Event()

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        await read_body(receive)
        try:
            await while_connected(receive, asyncio.Event().wait())
        except RefusedRequest:
            ended.set()
        await answer(send, b"late")

    tls = ReloadingContext(write_pair(tmp_path, authority.issue()))
    async with server(app, tls=tls) as running:
        client = await running.connect(trusting(authority))
        client.send(post(b"{}"))
        await asyncio.sleep(0)
        client.writer.close()
        async with asyncio.timeout(10):
            await ended.wait()


async def test_work_that_does_not_wait_starts_nothing() -> None:
    caller = Caller()

    async def work() -> str:
        return "done"

    assert await while_connected(caller, work()) == "done"
    await asyncio.sleep(0)
    assert caller.asked == 0 and not watches()


async def test_the_result_of_work_counts_and_nothing_is_left_running() -> None:
    caller = Caller()

    async def work() -> str:
        await asyncio.sleep(0.01)
        return "done"

    assert await while_connected(caller, work()) == "done"
    await asyncio.sleep(0)
    assert caller.asked == 1 and not watches()


async def test_a_timeout_of_the_work_itself_is_not_taken_for_a_caller_that_hung_up() -> None:
    async def work() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await while_connected(Caller(), work())


@pytest.mark.parametrize(("query", "seconds"), [(b"timeout=5s", 4.0), (b"timeout=1s", 0.8), (b"", 24.0)])
def test_an_answer_is_sent_with_time_left_to_travel(query: bytes, seconds: float) -> None:
    assert answer_by({"type": "http", "query_string": query}, 100.0) == pytest.approx(100.0 + seconds)
