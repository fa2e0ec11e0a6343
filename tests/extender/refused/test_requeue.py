"""Pods that were refused and fit now are requeued once; other pods are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import extender.refused.requeue
from extender.packing.fleet import fleet_of
from extender.packing.placement import POLICIES
from extender.packing.workload_mix import WorkloadMix
from extender.refused.requeue import Requeue
from extender.scheduler_api.answer_cache import AnswerCache
from extender.state import State
from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from kube.api.access import Access
from kube.api.calls import ApiCalls
from tests.builders import pod
from tests.extender.bind.test_binder import manifest
from tests.extender.pod_server import PodServer, serving_pods
from tests.extender.populated import no_budgets, node
from tests.waiting import until

SMALL, LARGE = (pod().asks(core=core, memory="20") for core in ("50", "100"))


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender.refused.requeue, "_PAUSE_S", 0.01)


@pytest.fixture
def server() -> Iterator[PodServer]:
    with serving_pods() as server:
        server.put(manifest("tenant", LARGE) | {"spec": {**LARGE.manifest["spec"], "nodeName": "n1"}})
        server.put(manifest("small", SMALL))
        server.put(manifest("large", LARGE))
        yield server


@pytest.fixture
def state(server: PodServer) -> State:
    """One card that `tenant` has."""
    state = State(Dialects(), CapacityRules())
    state.replace_nodes([node("n1", 1, 16384)])
    state.replace_pods(server.listed())
    return state


@pytest.fixture
async def requeue(server: PodServer, state: State) -> AsyncIterator[Requeue]:
    """A running Requeue to which `small` and `large` were added."""
    policy = POLICIES["binpack"](WorkloadMix(()), fleet_of(state.nodes().values()))
    calls = ApiCalls(Access("127.0.0.1", server.port))
    requeue = Requeue(state, AnswerCache(state, lambda _name: policy), calls, no_budgets())
    refuse(state, requeue)
    running = asyncio.create_task(requeue.run())
    yield requeue
    assert not running.done()
    running.cancel()
    calls.close()


def refuse(state: State, requeue: Requeue) -> None:
    for name in ("small", "large"):
        facts = state.pod(f"uid-{name}")
        assert facts is not None
        requeue.add(facts)


async def rounds(count: int = 5) -> None:
    """Some turns of the loop that looks."""
    for _ in range(count):
        await asyncio.sleep(0.02)


def woken(server: PodServer) -> list[str]:
    return [name for name in ("large", "small") if names.RECONSIDER in server.annotations(name)]


@pytest.mark.usefixtures("requeue")
async def test_a_waiting_pod_is_requeued_once_when_a_card_becomes_free(server: PodServer, state: State) -> None:
    state.end_pod("uid-tenant")
    await until(lambda: woken(server) == ["large", "small"])
    await rounds()
    assert [call.method for call in server.calls] == ["PATCH", "PATCH"]


@pytest.mark.usefixtures("requeue")
async def test_a_pod_that_would_be_refused_again_is_not_requeued(server: PodServer, state: State) -> None:
    server.put(manifest("half", SMALL) | {"spec": {**SMALL.manifest["spec"], "nodeName": "n1"}})
    state.replace_pods(server.listed())
    state.end_pod("uid-tenant")
    await until(lambda: woken(server) == ["small"])
    await rounds()
    assert len(server.calls) == 1


@pytest.mark.usefixtures("requeue")
async def test_nothing_is_computed_while_nothing_changes(server: PodServer) -> None:
    await rounds()
    assert server.calls == []


async def test_a_pod_that_is_refused_again_is_requeued_by_the_next_change_only(
    server: PodServer, state: State, requeue: Requeue
) -> None:
    state.end_pod("uid-tenant")
    await until(lambda: woken(server) == ["large", "small"])
    refuse(state, requeue)
    await rounds()
    assert len(server.calls) == 2
    state.put_node(node("n2", 1, 16384))
    await until(lambda: len(server.calls) == 4)
