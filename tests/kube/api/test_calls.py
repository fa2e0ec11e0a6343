"""Single calls: what may change something is sent once, and the caller learns what is not known."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
import uvloop

import kube.api.calls
from kube.api.access import Access, AccessError
from kube.api.calls import ApiCalls, NoAnswerError, NotSentError

from ..object_server import Fault, ObjectServer, serving_objects

PODS = "/api/v1/namespaces/a/pods"
POD = b'{"metadata":{"name":"p"}}'
Story = Callable[[ObjectServer, ApiCalls], Awaitable[None]]


def tell(story: Story) -> None:
    """On both loops: transports of the two have little in common."""

    async def run() -> None:
        with serving_objects() as server:
            calls = ApiCalls(Access("127.0.0.1", server.port, prefix="/cluster", token=lambda: "secret"))
            try:
                await story(server, calls)
            finally:
                calls.close()

    asyncio.run(run())
    uvloop.run(run())


def made(server: ObjectServer) -> list[str]:
    return [call.method for call in server.calls]


def connections(server: ObjectServer) -> int:
    return len({call.connection for call in server.calls})


def test_all_calls_of_one_after_the_other_share_a_connection() -> None:
    async def story(server: ObjectServer, calls: ApiCalls) -> None:
        assert (await calls.post(PODS, POD)).status == 201
        assert json.loads((await calls.get(f"{PODS}/p")).body)["metadata"]["resourceVersion"] == "1"
        assert (await calls.patch(f"{PODS}/p", b'{"metadata":{"uid":"u"}}')).status == 200
        assert (await calls.put(f"{PODS}/p", b'{"metadata":{"name":"p","resourceVersion":"1"}}')).status == 409
        assert json.loads((await calls.delete(f"{PODS}/p")).body)["metadata"] == {
            "name": "p",
            "uid": "u",
            "resourceVersion": "2",
        }
        assert connections(server) == 1
        assert all(call.headers["Authorization"] == "Bearer secret" for call in server.calls)
        assert all(call.path.startswith("/cluster/api/v1/") for call in server.calls)
        assert server.calls[2].headers["Content-Type"] == "application/merge-patch+json"

    tell(story)


def test_a_refusal_is_an_answer_in_the_servers_words() -> None:
    async def story(_: ObjectServer, calls: ApiCalls) -> None:
        answer = await calls.get(f"{PODS}/p")
        assert (answer.status, answer.message()) == (404, "not found")

    tell(story)


def test_calls_beside_each_other_take_no_more_connections_than_allowed() -> None:
    async def run() -> None:
        with serving_objects() as server:
            calls = ApiCalls(Access("127.0.0.1", server.port), connections=3)
            answers = await asyncio.gather(*(calls.get(f"{PODS}/{number}") for number in range(30)))
            assert [answer.status for answer in answers] == [404] * 30
            assert connections(server) <= 3
            calls.close()

    asyncio.run(run())


@pytest.mark.parametrize("fault", ["unheard", "unanswered", "unended"])
def test_a_write_without_an_answer_is_never_repeated(fault: Fault) -> None:
    async def story(server: ObjectServer, calls: ApiCalls) -> None:
        await calls.get(PODS)
        server.faults = [fault]
        with pytest.raises(NoAnswerError, match=f"no answer to POST {PODS}: the API server closed") as told:
            await calls.post(PODS, POD)
        assert not isinstance(told.value, NotSentError)
        assert made(server) == ["GET", "POST"]
        assert (f"/cluster{PODS}/p" in server.objects) == (fault != "unheard")

    tell(story)


def test_a_read_on_a_kept_connection_that_has_died_is_asked_once_more() -> None:
    async def story(server: ObjectServer, calls: ApiCalls) -> None:
        await calls.post(PODS, POD)
        server.faults = ["unheard"]
        assert (await calls.get(f"{PODS}/p")).status == 200
        assert made(server) == ["POST", "GET", "GET"]
        server.faults = ["unheard", "unheard"]
        with pytest.raises(NoAnswerError):
            await calls.get(f"{PODS}/p")

    tell(story)


def test_a_connection_that_the_server_gives_up_is_not_used_again() -> None:
    async def story(server: ObjectServer, calls: ApiCalls) -> None:
        server.closes = True
        for _ in range(3):
            assert (await calls.post(PODS, POD)).status in (201, 409)
        assert connections(server) == 3

    tell(story)


@pytest.mark.parametrize("limit", ["_IDLE_S", "_LONGEST_S"])
def test_what_was_kept_for_too_long_is_not_used_again(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube.api.calls, limit, 0.0)

    async def story(server: ObjectServer, calls: ApiCalls) -> None:
        for _ in range(2):
            await calls.get(PODS)
        assert connections(server) == 2

    tell(story)


def test_a_call_that_takes_too_long_has_no_answer() -> None:
    async def story(server: ObjectServer, calls: ApiCalls) -> None:
        server.faults = ["silent"]
        with pytest.raises(NoAnswerError, match=r"no answer to POST /x within 0\.05 s"):
            await calls.post("/x", b"", timeout_s=0.05)

    tell(story)


def test_a_call_that_is_given_up_leaves_no_answer_for_the_next_one() -> None:
    async def story(_: ObjectServer, calls: ApiCalls) -> None:
        await calls.post(PODS, POD)
        given_up = asyncio.create_task(calls.get(PODS))
        await asyncio.sleep(0)
        given_up.cancel()
        assert (await calls.get(f"{PODS}/p")).status == 200

    tell(story)


def test_what_never_left_is_told_apart() -> None:
    def no_token() -> str:
        raise AccessError("token: cannot be read")

    async def run() -> None:
        with serving_objects() as gone:
            port = gone.port
        for access, words in (
            (Access("127.0.0.1", port), "Connect call failed"),
            (Access("127.0.0.1", port, token=no_token), "token: cannot be read"),
        ):
            with pytest.raises(NotSentError, match=words):
                await ApiCalls(access).post(PODS, POD)

    asyncio.run(run())


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/\u00e4", "/a\x00"])
def test_a_path_can_smuggle_nothing(path: str) -> None:
    async def story(server: ObjectServer, calls: ApiCalls) -> None:
        with pytest.raises(ValueError, match="quote what stands in it"):
            await calls.get(path)
        assert not server.calls

    tell(story)
