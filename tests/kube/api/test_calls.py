"""Single calls: what may change something is sent once, and the caller learns what is not known."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest

import kube.api.calls
from kube.api.access import Access, AccessError
from kube.api.calls import ApiCalls, NoAnswerError, NotSentError

from ..object_server import Fault, ObjectServer, serving_objects

PODS = "/api/v1/namespaces/a/pods"
POD = b'{"metadata":{"name":"p"}}'


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Both loops: their transports have little in common."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with serving_objects() as server:
        yield server


@pytest.fixture
async def calls(server: ObjectServer) -> AsyncIterator[ApiCalls]:
    calls = ApiCalls(Access("127.0.0.1", server.port, prefix="/cluster", token=lambda: "secret"))
    yield calls
    calls.close()


def made(server: ObjectServer) -> list[str]:
    return [call.method for call in server.calls]


def connections(server: ObjectServer) -> int:
    return len({call.connection for call in server.calls})


async def test_sequential_calls_share_a_connection(server: ObjectServer, calls: ApiCalls) -> None:
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


async def test_a_refusal_is_an_answer_with_the_servers_message(calls: ApiCalls) -> None:
    answer = await calls.get(f"{PODS}/p")
    assert (answer.status, answer.message()) == (404, "not found")


async def test_concurrent_calls_use_at_most_the_allowed_connections() -> None:
    with serving_objects() as server:
        calls = ApiCalls(Access("127.0.0.1", server.port), connections=3)
        answers = await asyncio.gather(*(calls.get(f"{PODS}/{number}") for number in range(30)))
        assert [answer.status for answer in answers] == [404] * 30
        assert connections(server) <= 3
        calls.close()


@pytest.mark.parametrize("fault", ["unheard", "unanswered", "unended"])
async def test_a_write_without_an_answer_is_never_repeated(fault: Fault, server: ObjectServer, calls: ApiCalls) -> None:
    await calls.get(PODS)
    server.faults = [fault]
    with pytest.raises(NoAnswerError, match=f"no answer to POST {PODS}: the API server closed") as raised:
        await calls.post(PODS, POD)
    assert not isinstance(raised.value, NotSentError)
    assert made(server) == ["GET", "POST"]
    assert (f"/cluster{PODS}/p" in server.objects) == (fault != "unheard")


async def test_a_read_on_a_dead_connection_is_repeated_once(server: ObjectServer, calls: ApiCalls) -> None:
    await calls.post(PODS, POD)
    server.faults = ["unheard"]
    assert (await calls.get(f"{PODS}/p")).status == 200
    assert made(server) == ["POST", "GET", "GET"]
    server.faults = ["unheard", "unheard"]
    with pytest.raises(NoAnswerError):
        await calls.get(f"{PODS}/p")


async def test_a_connection_that_the_server_closes_is_not_used_again(server: ObjectServer, calls: ApiCalls) -> None:
    server.closes = True
    for _ in range(3):
        assert (await calls.post(PODS, POD)).status in (201, 409)
    assert connections(server) == 3


@pytest.mark.parametrize("limit", ["_IDLE_S", "_LONGEST_S"])
async def test_an_old_connection_is_not_used_again(
    limit: str, monkeypatch: pytest.MonkeyPatch, server: ObjectServer, calls: ApiCalls
) -> None:
    monkeypatch.setattr(kube.api.calls, limit, 0.0)
    for _ in range(2):
        await calls.get(PODS)
    assert connections(server) == 2


async def test_a_call_that_takes_too_long_has_no_answer(server: ObjectServer, calls: ApiCalls) -> None:
    server.faults = ["silent"]
    with pytest.raises(NoAnswerError, match=r"no answer to POST /x within 0\.05 s"):
        await calls.post("/x", b"", timeout_s=0.05)


async def test_a_cancelled_call_leaves_no_answer_for_the_next_one(calls: ApiCalls) -> None:
    await calls.post(PODS, POD)
    given_up = asyncio.create_task(calls.get(PODS))
    await asyncio.sleep(0)
    given_up.cancel()
    assert (await calls.get(f"{PODS}/p")).status == 200


async def test_a_request_that_was_not_sent_has_its_own_error() -> None:
    def no_token() -> str:
        raise AccessError("token: cannot be read")

    with serving_objects() as gone:
        port = gone.port
    for access, words in (
        (Access("127.0.0.1", port), "Connect call failed|Connection refused"),
        (Access("127.0.0.1", port, token=no_token), "token: cannot be read"),
    ):
        with pytest.raises(NotSentError, match=words):
            await ApiCalls(access).post(PODS, POD)


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/\u00e4", "/a\x00"])
async def test_a_path_cannot_add_headers(path: str, server: ObjectServer, calls: ApiCalls) -> None:
    with pytest.raises(ValueError, match="quote it"):
        await calls.get(path)
    assert not server.calls
