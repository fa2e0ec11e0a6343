"""Pods that were refused and would find a card now are brought to the scheduler's mind, once, and nobody else is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

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
from tests.kube.manifests.test_folder_source import until

SMALL, LARGE = (pod().asks(core=core, memory="20") for core in ("50", "100"))

Story = Callable[[PodServer, State, Requeue], Awaitable[None]]


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender.refused.requeue, "_PAUSE_S", 0.01)


def tell(story: Story) -> None:
    """Of one card that `tenant` has, while `small` and `large` were refused."""

    async def run() -> None:
        with serving_pods() as server:
            server.put(manifest("tenant", LARGE) | {"spec": {**LARGE.manifest["spec"], "nodeName": "n1"}})
            server.put(manifest("small", SMALL))
            server.put(manifest("large", LARGE))
            state = State(Dialects(), CapacityRules())
            state.replace_nodes([node("n1", 1, 16384)])
            state.replace_pods(server.listed())
            policy = POLICIES["binpack"](WorkloadMix(()), fleet_of(state.nodes().values()))
            calls = ApiCalls(Access("127.0.0.1", server.port))
            waking = Requeue(state, AnswerCache(state, lambda _name: policy), calls, no_budgets())
            refuse(state, waking)
            running = asyncio.create_task(waking.run())
            try:
                await story(server, state, waking)
                assert not running.done()
            finally:
                running.cancel()
                calls.close()

    uvloop.run(run())


def refuse(state: State, waking: Requeue) -> None:
    for name in ("small", "large"):
        facts = state.pod(f"uid-{name}")
        assert facts is not None
        waking.refused(facts)


async def rounds(count: int = 5) -> None:
    """Some turns of the loop that looks."""
    for _ in range(count):
        await asyncio.sleep(0.02)


def woken(server: PodServer) -> list[str]:
    return [name for name in ("large", "small") if names.RECONSIDER in server.annotations(name)]


def test_when_a_card_is_free_those_who_wait_for_it_are_woken_once() -> None:
    async def story(server: PodServer, state: State, _: Requeue) -> None:
        state.end_pod("uid-tenant")
        await until(lambda: woken(server) == ["large", "small"])
        await rounds()
        assert [call.method for call in server.calls] == ["PATCH", "PATCH"]

    tell(story)


def test_whoever_would_be_refused_again_sleeps_on() -> None:
    async def story(server: PodServer, state: State, _: Requeue) -> None:
        server.put(manifest("half", SMALL) | {"spec": {**SMALL.manifest["spec"], "nodeName": "n1"}})
        state.replace_pods(server.listed())
        state.end_pod("uid-tenant")
        await until(lambda: woken(server) == ["small"])
        await rounds()
        assert len(server.calls) == 1

    tell(story)


def test_nothing_is_asked_of_anybody_while_nothing_changes() -> None:
    async def story(server: PodServer, _state: State, _: Requeue) -> None:
        await rounds()
        assert server.calls == []

    tell(story)


def test_who_was_refused_anew_is_woken_anew_by_the_next_change_only() -> None:
    async def story(server: PodServer, state: State, waking: Requeue) -> None:
        state.end_pod("uid-tenant")
        await until(lambda: woken(server) == ["large", "small"])
        refuse(state, waking)
        await rounds()
        assert len(server.calls) == 2
        state.put_node(node("n2", 1, 16384))
        await until(lambda: len(server.calls) == 4)

    tell(story)
