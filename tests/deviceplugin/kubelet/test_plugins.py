"""All plugins at a kubelet over real sockets: registration, restarts, dropped streams, other plugins."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from deviceplugin.kubelet import served_resource
from deviceplugin.kubelet.messages import Device
from deviceplugin.kubelet.plugins import Plugins
from deviceplugin.kubelet.pod_resources import PodResources
from deviceplugin.kubelet.served_resource import ServedResource
from tests.waiting import until

from .kubelet import Kubelet, kubelet
from .stub_handler import StubHandler

CORE = "tencent.com/vcuda-core"
MEMORY = "tencent.com/vcuda-memory"


def devices(count: int, first: int = 0) -> list[Device]:
    return [Device(f"hc-{number}") for number in range(first, first + count)]


class Agent:
    def __init__(self, at: Kubelet) -> None:
        self.handler = StubHandler()
        self.pod_resources = PodResources(at.pod_resources)
        self.registered: list[str] = []
        self.plugins = Plugins(self.handler, at.plugin_folder, self.pod_resources, self.registered.append)
        self.running = asyncio.create_task(self.plugins.run())

    async def end(self) -> float:
        """Returns the seconds that it took."""
        began = asyncio.get_running_loop().time()
        self.running.cancel()
        await asyncio.wait((self.running,))
        took = asyncio.get_running_loop().time() - began
        await self.pod_resources.close()
        return took


@contextlib.asynccontextmanager
async def agent(at: Kubelet) -> AsyncIterator[Agent]:
    one = Agent(at)
    try:
        yield one
        assert not one.running.done()
    finally:
        await one.end()


@pytest.fixture
async def node(folder: Path) -> AsyncIterator[Kubelet]:
    async with kubelet(folder) as node:
        yield node


@pytest.fixture
async def one(node: Kubelet) -> AsyncIterator[Agent]:
    async with agent(node) as one:
        yield one


async def test_plugins_that_restart_after_a_bug_serve_all_resources(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(_: ServedResource) -> None:
        raise ZeroDivisionError

    async with kubelet(folder) as node:
        one = Agent(node)
        one.plugins.offer({CORE: devices(3)})
        await until(lambda: node.devices(CORE))
        with monkeypatch.context() as broken:
            broken.setattr(ServedResource, "run", bug)
            one.plugins.offer({CORE: devices(3), MEMORY: devices(2)})
            await asyncio.wait((one.running,), timeout=10)
        assert one.running.exception() is not None
        await until(lambda: not node.devices(CORE))
        one.running = asyncio.create_task(one.plugins.run())
        await until(lambda: node.devices(CORE) == devices(3) and node.devices(MEMORY) == devices(2))
        await one.end()


async def test_a_resource_is_registered_with_all_devices_and_prestart(node: Kubelet, one: Agent) -> None:
    one.plugins.offer({CORE: devices(100), MEMORY: [Device("hc-0", healthy=False, numa=1), Device("hc-1", numa=0)]})
    await until(lambda: node.devices(CORE) and node.devices(MEMORY))
    assert node.devices(CORE) == devices(100)
    assert node.devices(MEMORY) == [Device("hc-0", healthy=False, numa=1), Device("hc-1", numa=0)]
    for client in node.registered:
        assert client.request.version == "v1beta1"
        assert client.request.options.pre_start_required and client.options.pre_start_required
        assert not client.options.get_preferred_allocation_available
    assert len(node.registered) == 2
    assert len({client.request.endpoint for client in node.registered}) == 2
    assert one.plugins.problems() == ()


async def test_each_registration_is_reported(node: Kubelet, one: Agent) -> None:
    one.plugins.offer({CORE: devices(1)})
    await until(lambda: one.registered == [CORE])
    await node.stop()
    await node.start()
    await until(lambda: one.registered == [CORE, CORE])


async def test_calls_reach_the_handler_with_their_resource(node: Kubelet, one: Agent) -> None:
    one.plugins.offer({CORE: devices(4), MEMORY: devices(4)})
    await until(lambda: node.devices(CORE) and node.devices(MEMORY))
    for resource in (CORE, MEMORY):
        assert (await node.clients[resource].allocate("hc-1")).envs["RESOURCE"] == resource
        await node.clients[resource].prestart("hc-1", "hc-2")
    assert one.handler.started == [(CORE, ("hc-1", "hc-2")), (MEMORY, ("hc-1", "hc-2"))]


@pytest.mark.parametrize("turns", range(4))
async def test_an_agent_that_is_stopped_during_a_change_stops(folder: Path, turns: int) -> None:
    async with kubelet(folder) as node:
        one = Agent(node)
        one.plugins.offer({CORE: devices(2), MEMORY: devices(2)})
        await until(lambda: node.devices(CORE) and node.devices(MEMORY))
        one.plugins.offer({CORE: devices(3), MEMORY: devices(3)})
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await one.end()


async def test_each_change_is_published_completely_and_to_its_resource_only(node: Kubelet, one: Agent) -> None:
    one.plugins.offer({CORE: devices(2), MEMORY: devices(2)})
    await until(lambda: node.devices(CORE) and node.devices(MEMORY))
    one.plugins.offer({CORE: devices(3), MEMORY: devices(2)})
    await until(lambda: node.devices(CORE) == devices(3))
    one.plugins.offer({CORE: [Device("hc-0", healthy=False), *devices(2, 1)], MEMORY: devices(2)})
    await until(lambda: node.devices(CORE)[0] == Device("hc-0", healthy=False))
    assert len(node.clients[CORE].lists) == 3
    assert len(node.clients[MEMORY].lists) == 1


async def test_simultaneous_changes_are_published_once(node: Kubelet, one: Agent) -> None:
    one.plugins.offer({CORE: devices(1)})
    await until(lambda: node.devices(CORE))
    for count in range(2, 500):
        one.plugins.offer({CORE: devices(count)})
    await until(lambda: node.devices(CORE) == devices(499))
    assert len(node.clients[CORE].lists) <= 3


async def test_changes_while_kubelet_does_not_listen_are_published_when_it_does(node: Kubelet, one: Agent) -> None:
    await node.stop()
    one.plugins.offer({CORE: devices(2)})
    await until(one.plugins.problems)
    (problem,) = one.plugins.problems()
    assert str(node.plugin_folder) in problem
    one.plugins.offer({CORE: devices(3)})
    await node.start()
    await until(lambda: node.devices(CORE))
    assert node.clients[CORE].lists == [devices(3)]
    await until(lambda: not one.plugins.problems())


async def test_all_resources_are_registered_again_soon_after_kubelet_restarted(node: Kubelet, one: Agent) -> None:
    one.plugins.offer({CORE: devices(800), MEMORY: devices(2560)})
    await until(lambda: node.devices(CORE) and node.devices(MEMORY))
    gaps = []
    for _ in range(5):
        before = {client.request.endpoint for client in node.clients.values()}
        await node.stop()
        await node.start()
        await until(lambda: node.devices(CORE) and node.devices(MEMORY))
        assert not before & {client.request.endpoint for client in node.clients.values()}
        gaps.append(max(client.received_at[0] for client in node.clients.values()) - node.started_at)
    assert min(gaps) < 0.3, gaps  # 0.1 on a machine that does nothing else
    await until(lambda: len(node.sockets()) == 2)


async def test_plugins_wait_for_a_kubelet_that_has_not_started(folder: Path) -> None:
    node = Kubelet(folder)
    async with agent(node) as one:
        one.plugins.offer({CORE: devices(1)})
        await until(one.plugins.problems)
        await node.start()
        await until(lambda: node.devices(CORE))
    await node.stop()


async def test_a_dropped_stream_is_registered_again_on_another_socket(node: Kubelet, one: Agent) -> None:
    one.plugins.offer({CORE: devices(2), MEMORY: devices(2)})
    await until(lambda: node.devices(CORE) and node.devices(MEMORY))
    first = node.clients[CORE].request.endpoint
    await node.drop(CORE)
    await until(lambda: node.devices(CORE))
    assert node.clients[CORE].request.endpoint != first
    assert len(node.registered) == 3
    await until(lambda: len(node.sockets()) == 2)


async def test_repeatedly_dropped_registrations_back_off(
    monkeypatch: pytest.MonkeyPatch, node: Kubelet, one: Agent
) -> None:
    monkeypatch.setattr(served_resource, "_SHORTEST_REST_S", 0.2)
    one.plugins.offer({CORE: devices(2)})
    times = []
    for _ in range(4):
        await until(lambda: node.devices(CORE))
        times.append(node.clients[CORE].received_at[0])
        await node.drop(CORE)
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[-1] > 0.8, gaps
    await node.stop()
    node.refusal = "not quite ready"
    await node.start()
    await until(lambda: node.attempts > 5)
    node.refusal = ""
    await until(lambda: node.devices(CORE))
    assert node.clients[CORE].received_at[0] - node.started_at < 1.6, "a new kubelet is made to wait"


async def test_a_registration_that_lasted_is_repeated_at_once(
    monkeypatch: pytest.MonkeyPatch, node: Kubelet, one: Agent
) -> None:
    monkeypatch.setattr(served_resource, "_LONGEST_REST_S", 1.0)
    one.plugins.offer({CORE: devices(2)})
    for _ in range(6):
        await until(lambda: node.devices(CORE))
        await node.drop(CORE)
    await until(lambda: node.devices(CORE))
    await asyncio.sleep(1.1)
    dropped_at = asyncio.get_running_loop().time()
    await node.drop(CORE)
    await until(lambda: node.devices(CORE))
    assert node.clients[CORE].received_at[0] - dropped_at < 0.9


async def test_a_kubelet_that_hangs_during_registration_does_not_block_the_next_one(
    folder: Path, node: Kubelet, one: Agent
) -> None:
    node.hangs = True
    one.plugins.offer({CORE: devices(2)})
    await until(lambda: node.attempts)
    async with kubelet(folder) as new:
        await until(lambda: new.devices(CORE))
        assert new.clients[CORE].received_at[0] - new.started_at < 5
        assert new.attempts == 1


async def test_a_withdrawn_resource_is_no_longer_a_problem(node: Kubelet, one: Agent) -> None:
    node.refusal = "no"
    one.plugins.offer({CORE: devices(2), MEMORY: devices(1)})
    await until(lambda: len(one.plugins.problems()) == 2)
    one.plugins.offer({MEMORY: devices(1)})
    await until(lambda: len(one.plugins.problems()) == 1)


async def test_a_refusal_of_kubelet_is_reported_and_retried(node: Kubelet, one: Agent) -> None:
    node.refusal = 'the ResourceName "tencent.com/vcuda-core" is invalid'
    one.plugins.offer({CORE: devices(2)})
    await until(one.plugins.problems)
    (problem,) = one.plugins.problems()
    assert node.refusal in problem and problem.startswith("kubelet did not register tencent.com/vcuda-core")
    node.refusal = ""
    await until(lambda: node.devices(CORE))
    await until(lambda: not one.plugins.problems())
    await until(lambda: len(node.sockets()) == 1)


async def test_a_resource_of_another_plugin_is_not_touched_until_that_plugin_ends(node: Kubelet, one: Agent) -> None:
    node.foreign = {CORE: ["tencent.com/vcuda-core-7"]}
    one.plugins.offer({CORE: devices(2), MEMORY: devices(2)})
    await until(lambda: node.devices(MEMORY) and one.plugins.problems())
    (problem,) = one.plugins.problems()
    assert CORE in problem and "tencent.com/vcuda-core-7" in problem and "node_resources" in problem
    assert [client.request.resource_name for client in node.registered] == [MEMORY]
    node.foreign = {}
    await until(lambda: node.devices(CORE), within_s=10)
    await until(lambda: not one.plugins.problems())


async def test_registration_at_a_running_kubelet_awaits_the_check_for_other_plugins(
    monkeypatch: pytest.MonkeyPatch, node: Kubelet, one: Agent
) -> None:
    monkeypatch.setattr(served_resource, "_HASTY_LOOK_S", 0.0)
    node.foreign = {CORE: ["tencent.com/vcuda-core-7"]}
    node.looks.clear()
    a_minute_ago = time.time() - 60
    os.utime(node.plugin_folder / "kubelet.sock", (a_minute_ago, a_minute_ago))
    one.plugins.offer({CORE: devices(2)})
    await until(lambda: "GetAllocatableResources" in node.asked)
    node.looks.set()
    await until(one.plugins.problems)
    assert node.registered == []


async def test_a_resource_that_another_plugin_took_over_is_not_published(node: Kubelet, one: Agent) -> None:
    one.plugins.offer({CORE: devices(2)})
    await until(lambda: node.devices(CORE))
    ours = node.clients[CORE]
    node.foreign = {CORE: ["tencent.com/vcuda-core-7"]}
    one.plugins.offer({CORE: devices(3)})
    await until(one.plugins.problems)
    assert ours.lists == [devices(2)]
    assert node.dropped == 0, "kubelet would take the other plugin for the one that left"
    node.foreign = {}
    one.plugins.offer({CORE: devices(4)})
    await until(lambda: node.devices(CORE) == devices(4))
    assert len(node.registered) == 2 and ours.lists == [devices(2)]
    await until(lambda: not one.plugins.problems())


async def test_a_change_after_the_check_for_other_plugins_waits_for_the_next_check(node: Kubelet, one: Agent) -> None:
    one.plugins.offer({CORE: devices(2)})
    await until(lambda: node.devices(CORE))
    ours = node.clients[CORE]

    def another_comes() -> None:
        node.foreign = {CORE: ["tencent.com/vcuda-core-7"]}
        one.plugins.offer({CORE: devices(4)})

    await until(lambda: len(node.asked) >= 2)
    node.after_look = another_comes
    one.plugins.offer({CORE: devices(3)})
    await until(one.plugins.problems)
    assert devices(4) not in ours.lists


async def test_ids_of_an_earlier_plugin_may_stay_advertised_for_their_pods(node: Kubelet, one: Agent) -> None:
    kept = [*devices(2), Device("tencent.com/vcuda-core-7")]
    one.plugins.offer({CORE: kept})
    await until(lambda: node.devices(CORE))
    one.plugins.offer({CORE: [*kept, *devices(1, 2)]})
    await until(lambda: len(node.devices(CORE)) == 4)
    assert one.plugins.problems() == ()


async def test_a_withdrawn_resource_is_emptied_then_removed_and_may_come_back(node: Kubelet, one: Agent) -> None:
    one.plugins.offer({CORE: devices(2), MEMORY: devices(2)})
    await until(lambda: node.devices(CORE) and node.devices(MEMORY))
    leaving = node.clients[CORE]
    one.plugins.offer({MEMORY: devices(2)})
    await until(lambda: CORE not in node.clients)
    assert leaving.lists == [devices(2), []]
    await until(lambda: len(node.sockets()) == 1)
    assert one.plugins.problems() == () and MEMORY in node.clients
    one.plugins.offer({CORE: devices(1), MEMORY: devices(2)})
    await until(lambda: node.devices(CORE) == devices(1))


async def test_the_plugins_end_quickly_and_withdraw_no_devices(folder: Path) -> None:
    async with kubelet(folder) as node:
        one = Agent(node)
        one.handler.gate.clear()
        one.plugins.offer({CORE: devices(800), MEMORY: devices(2560)})
        await until(lambda: node.devices(CORE) and node.devices(MEMORY))
        clients = dict(node.clients)
        waiting = asyncio.create_task(clients[CORE].prestart("hc-1"))
        await until(lambda: one.handler.waiting)
        assert await one.end() < 5  # 0.1 on a machine that does nothing else; the call that waits never ends by itself
        await until(lambda: node.dropped == 2)
        assert clients[CORE].lists == [devices(800)] and clients[MEMORY].lists == [devices(2560)]
        assert node.sockets() == set()
        await asyncio.wait((waiting,), timeout=5)
        assert (
            waiting.cancelled() or "UNAVAILABLE" in str(waiting.exception()) or "CANCELLED" in str(waiting.exception())
        )


async def test_sockets_of_a_killed_agent_are_removed(folder: Path) -> None:
    async def story(node: Kubelet, one: Agent) -> None:
        one.plugins.offer({CORE: devices(1)})
        await until(lambda: node.devices(CORE))
        assert node.sockets() == {node.clients[CORE].request.endpoint, "nvidia-gpu.sock"}

    async with kubelet(folder) as node:
        (node.plugin_folder / "hc-0123abcd.sock").touch()
        (node.plugin_folder / "nvidia-gpu.sock").touch()
        async with agent(node) as one:
            await story(node, one)


async def test_a_missing_plugin_folder_is_reported(folder: Path) -> None:
    node = Kubelet(folder)
    node.plugin_folder.rmdir()
    async with agent(node) as one:
        one.plugins.offer({CORE: devices(1), MEMORY: devices(1)})
        await until(one.plugins.problems)
        (problem,) = one.plugins.problems()
        assert str(node.plugin_folder) in problem and "--kubelet-plugins" in problem
