"""The driver is told the memory of containers with limits, once they have a cgroup."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import pytest

from deviceplugin.slot_limits import SlotLimits
from deviceplugin.usage.cgroups import Cgroups
from deviceplugin.usage.driver_limits import MemoryLimit
from deviceplugin.usage.usage_report import StartedPod
from halfcard.isolation.mode import IsolationMode
from tests.builders import PodBuilder, pod

from .node_world import World, running_world

ID: Final = "5f" * 32
UID: Final = "0f1a9f52-5c3e-4a0a-9d0e-6b1f8f0c7a11"
SHARE: Final = pod().asks(core=30, memory=20)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with running_world() as world:
        world.mode = IsolationMode.WARN
        yield world


def limits(world: World) -> SlotLimits:
    root = world.folder / "cgroup"
    root.mkdir(exist_ok=True)
    (root / "cgroup.controllers").write_text("cpu memory\n")
    started = [StartedPod(facts, {"containers-0": f"containerd://{ID}"}, {}) for _, facts in world.pods]
    return SlotLimits(world.slots, Cgroups(root, world.folder / "proc"), lambda: started)


def make_cgroup(world: World) -> str:
    folder = world.folder / f"cgroup/kubepods/burstable/pod{UID}/{ID}"
    folder.mkdir(parents=True)
    return str(folder)


async def run(world: World, asks: PodBuilder) -> None:
    await world.run("p", asks, {"containers-0": ["GPU-0"]}, uid=UID)
    world.watch()


async def test_a_share_is_limited_once_its_container_has_a_cgroup(world: World) -> None:
    await run(world, SHARE)
    assert limits(world)(lambda _: True) == []
    folder = make_cgroup(world)
    found = {each._replace(slot="") for each in limits(world)(lambda _: True)}
    assert found == {MemoryLimit("", folder, "GPU-0", 5120)}
    assert limits(world)(lambda card: card != "GPU-0") == []


@pytest.mark.parametrize(
    ("mode", "asks"), [(IsolationMode.OFF, SHARE), (IsolationMode.WARN, pod().asks(core=100, memory=59))]
)
async def test_what_is_not_to_be_held_is_not_limited(world: World, mode: IsolationMode, asks: PodBuilder) -> None:
    world.mode = mode
    await run(world, asks)
    make_cgroup(world)
    assert limits(world)(lambda _: True) == []


async def test_with_cgroup_v1_nothing_is_limited(world: World) -> None:
    await run(world, SHARE)
    make_cgroup(world)
    found = limits(world)
    (world.folder / "cgroup/cgroup.controllers").unlink()
    assert found(lambda _: True) == []
