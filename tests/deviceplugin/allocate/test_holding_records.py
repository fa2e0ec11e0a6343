"""Pods say what holds their containers, after these have started, and once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Final

import pytest

from deviceplugin.allocate.holding_records import HoldingRecords
from halfcard import names
from halfcard.isolation.mode import IsolationMode
from serving.log import Log
from tests.builders import PodBuilder, pod

from ..node_world import World, running_world

SHARE: Final = pod().asks(core=30, memory=20)
CARD: Final = {"containers-0": ["GPU-0"]}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with running_world() as world:
        world.mode = IsolationMode.WARN
        yield world


async def recorded(world: World, records: HoldingRecords) -> object:
    """What the pod says after a round."""
    world.watch()
    pods = {stored.kubelet_uid: facts for stored, facts in world.pods}
    await records.record([*world.slots], pods)
    written = world.stored("p").annotations.get(names.HELD_BY)
    return None if written is None else json.loads(written)


@pytest.fixture
def records(world: World) -> HoldingRecords:
    return HoldingRecords(world.calls, Log())


async def test_a_pod_says_why_its_container_is_not_held_and_is_written_once(
    world: World, records: HoldingRecords
) -> None:
    await world.run("p", SHARE, CARD)
    before = world.patches()
    (limits, _) = world.limits("p")
    for _ in range(2):
        assert await recorded(world, records) == {"containers-0": {"why": limits["not_held"]}}
    assert "mounts no libcuda" in limits["not_held"] and world.patches() == before + 1
    assert await recorded(world, HoldingRecords(world.calls, Log())) and world.patches() == before + 1


@pytest.mark.parametrize(
    ("mode", "asks"), [(IsolationMode.OFF, SHARE), (IsolationMode.WARN, pod().asks(core=100, memory=59))]
)
async def test_nothing_is_recorded_of_containers_that_nothing_is_to_hold(
    world: World, records: HoldingRecords, mode: IsolationMode, asks: PodBuilder
) -> None:
    world.mode = mode
    await world.run("p", asks, CARD)
    assert await recorded(world, records) is None


async def test_what_the_driver_limits_is_recorded_when_that_is_known(world: World, records: HoldingRecords) -> None:
    await world.run("p", SHARE, CARD)
    assert await recorded(world, records) != {"containers-0": {"by": ["driver"]}}
    world.watch()
    pods = {stored.kubelet_uid: facts for stored, facts in world.pods}
    await records.record([*world.slots], pods, {slot.name for slot in world.slots})
    assert json.loads(world.stored("p").annotations[names.HELD_BY]) == {"containers-0": {"by": ["driver"]}}
