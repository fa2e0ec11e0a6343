"""The allocated ids from kubelet's socket: merged by resource, shared by callers, retried."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deviceplugin.kubelet import pod_resources as pod_resources_module
from deviceplugin.kubelet.channel import KubeletError
from deviceplugin.kubelet.messages import ListedDevices
from deviceplugin.kubelet.pod_resources import PodResources
from tests.waiting import until

from .kubelet import Kubelet, entry, holder, kubelet

CORE, MEMORY = "tencent.com/vcuda-core", "tencent.com/vcuda-memory"


@pytest.fixture
async def node(folder: Path) -> AsyncIterator[Kubelet]:
    async with kubelet(folder) as node:
        yield node


@pytest.fixture
async def pod_resources(node: Kubelet) -> AsyncIterator[PodResources]:
    pod_resources = PodResources(node.pod_resources)
    yield pod_resources
    await pod_resources.close()


async def test_the_ids_of_a_container_are_merged_by_resource(node: Kubelet, pod_resources: PodResources) -> None:
    entries = [entry(CORE, "hc-1"), entry(MEMORY, "hc-1"), entry(CORE, "hc-2", "hc-3"), entry(CORE, "hc-1")]
    two = holder("two", [entry(CORE, "hc-5")], "first")
    two.containers.add(name="second", devices=[entry(CORE, "hc-6")])
    two.containers.add(name="third")
    node.holders = [holder("one", entries), holder("none", []), two]
    assert await pod_resources.listed_devices() == (
        ListedDevices("team", "one", "main", CORE, frozenset({"hc-1", "hc-2", "hc-3"})),
        ListedDevices("team", "one", "main", MEMORY, frozenset({"hc-1"})),
        ListedDevices("team", "two", "first", CORE, frozenset({"hc-5"})),
        ListedDevices("team", "two", "second", CORE, frozenset({"hc-6"})),
    )


async def test_allocatable_ids_are_grouped_by_resource(node: Kubelet, pod_resources: PodResources) -> None:
    assert await pod_resources.allocatable() == {}
    node.foreign = {CORE: ["a", "b", "a"], MEMORY: ["a"]}
    assert await pod_resources.allocatable() == {CORE: frozenset("ab"), MEMORY: frozenset("a")}


async def test_an_answer_may_be_large(node: Kubelet, pod_resources: PodResources) -> None:
    node.holders = [holder(f"pod-{n}", [entry(f"{CORE}{'x' * 200}", f"hc-{n}")] * 200) for n in range(200)]
    assert sum(pod.ByteSize() for pod in node.holders) > 8 * 2**20
    assert len(await pod_resources.listed_devices()) == 200


async def test_an_answer_describes_a_state_after_the_question_and_is_shared_by_all_waiting_callers(
    node: Kubelet, pod_resources: PodResources
) -> None:
    node.answers.clear()
    first = asyncio.create_task(pod_resources.listed_devices())
    await until(lambda: node.asked == ["List"])
    node.holders = [holder("late", [entry(CORE, "hc-1")])]  # the answer to the first has been made already
    later = [asyncio.create_task(pod_resources.listed_devices()) for _ in range(40)]
    for _ in range(3):
        await asyncio.sleep(0)  # they have called, as far as they do
    assert await pod_resources.allocatable() == {}
    assert node.asked == ["List", "GetAllocatableResources"], "one List at a time"
    node.answers.set()
    assert await first == ()
    for task in later:
        assert [held.pod for held in await task] == ["late"]
    assert node.asked.count("List") == 2
    await pod_resources.listed_devices()
    assert node.asked.count("List") == 3


async def test_a_cancelled_caller_does_not_disturb_the_others(node: Kubelet, pod_resources: PodResources) -> None:
    node.answers.clear()
    impatient, patient = (asyncio.create_task(pod_resources.listed_devices()) for _ in range(2))
    await until(lambda: node.asked)
    impatient.cancel()
    await asyncio.wait((impatient,))
    node.answers.set()
    assert await patient == ()
    assert len(node.asked) == 1


async def test_a_rate_limited_call_is_repeated(node: Kubelet, pod_resources: PodResources) -> None:
    node.limited = 3
    assert await pod_resources.listed_devices() == ()
    assert len(node.asked) == 4
    node.limited = 1
    assert await pod_resources.allocatable() == {}


async def test_a_kubelet_that_always_limits_calls_is_given_up(
    monkeypatch: pytest.MonkeyPatch, node: Kubelet, pod_resources: PodResources
) -> None:
    monkeypatch.setattr(pod_resources_module, "_PATIENCE_S", 0.2)
    node.limited = 10**6
    with pytest.raises(KubeletError, match="rejected by rate limit"):
        await pod_resources.listed_devices()
    assert len(node.asked) < 15


async def test_a_missing_kubelet_is_reported_and_found_again(node: Kubelet, pod_resources: PodResources) -> None:
    await node.stop()
    waiting = [asyncio.create_task(pod_resources.listed_devices()) for _ in range(2)]
    for task in waiting:
        with pytest.raises(KubeletError, match=rf"{node.pod_resources}.*--pod-resources"):
            await task
    await node.start()
    async with asyncio.timeout(0.5):
        while True:
            try:
                assert await pod_resources.listed_devices() == ()
            except KubeletError:
                await asyncio.sleep(0.01)
            else:
                break


async def test_closing_ends_waiting_callers(node: Kubelet, pod_resources: PodResources) -> None:
    node.answers.clear()
    first = asyncio.create_task(pod_resources.listed_devices())
    await until(lambda: node.asked)
    second = asyncio.create_task(pod_resources.listed_devices())
    await asyncio.sleep(0)
    await pod_resources.close()
    done, waiting = await asyncio.wait((first, second), timeout=1)
    assert not waiting and all(task.cancelled() or task.exception() for task in done)
