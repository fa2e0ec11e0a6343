"""A replica that does not lead hands binds on to the one that does; and who may ask for a bind at all."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from extender.app import extender_app
from extender.bind.forwarding import Forwarding
from extender.metrics import ExtenderMetrics
from extender.scheduler_api.endpoint import DeclinedCall
from extender.scheduler_api.handlers import FORWARDED, VerbHandlers
from extender.scheduler_api.wire import MAX_BINDING_BYTES, MAX_PREEMPTION_BYTES
from halfcard import names
from serving.address import Address
from serving.lifecycle import Lifecycle
from serving.listener import Listener, StopTimings, serve
from serving.log import Log
from tests.admission.asgi import JSON, ask

from ..pod_server import PodServer, serving_pods
from ..scheduler import Extender, small_cluster
from .test_binder import Replica, manifest

BESIDE_US = {"client": ("127.0.0.1", 1)}
BIND = json.dumps({"PodName": "p", "PodNamespace": "team", "PodUID": "uid-p", "Node": "n1"}).encode()
ELSEWHERE = BIND.replace(b"n1", b"n9")


def no_tls() -> Any:
    raise AssertionError("it is plain HTTP")


def follower(leader: str | None, mine: str = "http://127.0.0.1:2") -> VerbHandlers:
    return replace(Extender(small_cluster()).scheduling, forwarding=Forwarding(lambda: leader, mine, no_tls))


async def error(scheduling: VerbHandlers, body: bytes = BIND, **scope: Any) -> str:
    """What kube-scheduler would read; empty where the pod is bound."""
    try:
        answer = await scheduling.bind(body, {**BESIDE_US, **scope})
    except DeclinedCall as why:
        return str(why)
    return str(json.loads(answer)["Error"])


@asynccontextmanager
async def leading(replica: Replica) -> AsyncIterator[str]:
    """The address of a replica that leads."""
    scheduling = replace(
        Extender(replica.state).scheduling, state=replica.state, binder=replica.binder, may_decide=lambda: True
    )
    log = Log(stream=io.StringIO())
    app = extender_app(
        scheduling, table={}, aliyun_unit_mib=1024, metrics=ExtenderMetrics(CollectorRegistry()), log=log
    )
    found: asyncio.Future[Mapping[str, Address]] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve(
            [Listener("extender", "127.0.0.1", 0, app)],
            lifecycle=Lifecycle(),
            log=log,
            stopping=StopTimings(0, 0, 0),
            on_ready=found.set_result,
        )
    )
    try:
        yield f"http://{(await found)['extender']}"
    finally:
        serving.cancel()


@pytest.fixture
def server() -> Iterator[PodServer]:
    with serving_pods() as server:
        server.put(manifest("p"))
        yield server


@pytest.fixture
async def address(server: PodServer) -> AsyncIterator[str]:
    """The address of the leader, which knows pod p."""
    replica = Replica(server)
    replica.see_all()
    async with leading(replica) as address:
        yield address
    replica.calls.close()


async def test_the_leader_binds_what_another_replica_forwards(server: PodServer, address: str) -> None:
    assert await error(follower(address)) == ""
    assert server.node("p") == "n1"


async def test_the_error_of_the_leader_is_returned_unchanged(server: PodServer, address: str) -> None:
    assert (await error(follower(address), ELSEWHERE)).startswith("node n9 is unknown to Halfcard")
    assert server.node("p") == ""


async def test_a_forwarded_call_is_not_forwarded_again(server: PodServer, address: str) -> None:
    said = await error(follower(address), query_string=FORWARDED)
    assert said.startswith("no replica of Halfcard's extender is the leader now")
    assert server.node("p") == ""


@pytest.mark.parametrize(
    ("leader", "why"),
    [
        (None, "an election is under way"),
        ("", "an election is under way"),
        ("http://127.0.0.1:2", "an election is under way"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1 does not answer"),
        ("nowhere", 'the Lease names no address of its holder: "nowhere"'),
    ],
)
async def test_the_answer_says_why_no_leader_can_be_reached(leader: str | None, why: str) -> None:
    said = await error(follower(leader))
    assert said.startswith("no replica of Halfcard's extender is the leader now")
    assert why in said


# --- who may ask ------------------------------------------------------------------------------------------------------

UNKNOWN: tuple[str, int] | None = None
REMOTE = [("10.0.0.7", 1), ("::ffff:10.0.0.7", 1), ("fd00::7", 1), ("scheduler", 1), ("", 1), UNKNOWN]
LOCAL = [("127.0.0.1", 1), ("127.9.9.9", 1), ("::1", 1), ("::ffff:127.0.0.1", 1)]


def refusal(scheduling: VerbHandlers, client: tuple[str, int] | None) -> str:
    try:
        scheduling.check_caller({"client": client})
    except DeclinedCall as why:
        return str(why)
    return ""


@pytest.mark.parametrize("client", REMOTE)
async def test_calls_from_other_machines_need_a_client_certificate(client: tuple[str, int] | None) -> None:
    assert "start the extender with --client-ca" in refusal(follower(None), client)
    assert refusal(replace(follower(None), is_mutual=True), client) == ""


def why_refused(path: str, body: bytes | list[None], *headers: tuple[str, str], client: str = "127.0.0.1") -> str:
    """Returns what the log says of a call; the answer of preempt has no field for it."""
    extender = Extender(small_cluster())

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        await extender.app({**scope, "client": (client, 1)}, receive, send)

    ask(called, path, body, headers=[JSON, *headers])
    return extender.said.getvalue()


@pytest.mark.parametrize("path", [names.BIND_PATH, names.PREEMPT_PATH, names.GPUSHARE_BIND_PATH])
def test_an_unproven_caller_is_refused_before_its_body_is_read(path: str) -> None:
    assert "only calls from this machine" in why_refused(path, [None], client="10.0.0.7")


@pytest.mark.parametrize(
    ("path", "most"), [(names.BIND_PATH, MAX_BINDING_BYTES), (names.PREEMPT_PATH, MAX_PREEMPTION_BYTES)]
)
def test_bodies_of_bind_and_preempt_are_bounded(path: str, most: int) -> None:
    assert f"larger than {most} bytes" in why_refused(path, [None], ("content-length", str(most + 1)))


def test_a_dense_body_of_preempt_is_refused_before_it_is_parsed() -> None:
    assert "values" in why_refused(names.PREEMPT_PATH, b'{"Pods":[' + b"{}," * 2**20 + b"{}]}")


@pytest.mark.parametrize("client", LOCAL)
async def test_calls_from_this_machine_need_no_client_certificate(client: tuple[str, int]) -> None:
    assert refusal(follower(None), client) == ""
