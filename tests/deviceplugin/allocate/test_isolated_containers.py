"""Which containers are held to their share when they start, by the setting of the node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from deviceplugin.inject.card_files import Description
from deviceplugin.kubelet.messages import RefusedError
from halfcard import names
from halfcard.cards import Card, Node
from halfcard.isolation.mode import IsolationMode
from halfcard.isolation.shared_files import CardControl, write_control
from tests.builders import PodBuilder, pod

from ..node_world import World, mounts, running_world

SHARE: Final = pod().asks(core=30, memory=20)
SLICED: Final = pod().asks(gpu_shared=1)
UUID: Final = "GPU-41414141-4141-4141-4141-414141414141"
CARD: Final = {"containers-0": [UUID]}
DRIVER: Final = "/usr/lib/libcuda.so.570"
"""In containers; on the node it lies elsewhere."""
CUDA_FILES: Final = [{"path": path} for path in ("/dev/nvidia0", *names.CUDA_DEVICE_FILES)]
CONTROL: Final = write_control([CardControl(b"A" * 16, 5120 << 20, 300)])


def described(**edits: Any) -> Description:
    devices = [{"name": UUID, "containerEdits": {"deviceNodes": CUDA_FILES, **edits}}]
    return msgspec.convert({"kind": names.NVIDIA_GPU, "devices": devices}, Description)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with running_world() as world:
        world.node = Node("n1", (Card(0, "T4", 15104, UUID, replicas=2),), slices=names.NVIDIA_GPU_SHARED)
        host_file(world).touch()
        world.described = [described(mounts=[mounted(world)])]
        world.mode = IsolationMode.ENFORCE
        yield world


def host_file(world: World) -> Path:
    return world.folder / "libcuda.so.570"


def mounted(world: World) -> dict[str, str]:
    return {"hostPath": str(host_file(world)), "containerPath": DRIVER}


def is_held(world: World) -> bool:
    """Whether the container's files and what it reads about them agree that it is held."""
    (held,) = {each["held_by"] == "library" for each in world.limits("p")}
    for edits in world.edits("p"):
        found = mounts(edits)
        assert (found[DRIVER] != str(host_file(world))) == held
        assert (f"{names.RUN_FOLDER}/account" in found) == held
    return bool(held)


@pytest.mark.parametrize("mode", [IsolationMode.ENFORCE, IsolationMode.WARN])
async def test_a_share_is_held_with_its_limits(world: World, mode: IsolationMode) -> None:
    world.mode = mode
    await world.run("p", SHARE, CARD)
    assert is_held(world)
    for edits in world.edits("p"):
        assert Path(mounts(edits)[f"{names.RUN_FOLDER}/control"]).read_bytes() == CONTROL


@pytest.mark.parametrize("asks", [pod().asks(core=100, memory=59), pod().asks(gpu=1), SLICED])
async def test_whole_cards_and_time_slices_are_never_held(world: World, asks: PodBuilder) -> None:
    await world.run("p", asks, CARD)
    assert not is_held(world)
    assert {each["not_held"] for each in world.limits("p")} == {None}


async def test_without_isolation_no_share_is_held(world: World) -> None:
    world.mode = IsolationMode.OFF
    await world.run("p", SHARE, CARD)
    assert not is_held(world)
    assert {each["not_held"] for each in world.limits("p")} == {"isolation is off"}


async def test_no_container_gets_libraries_that_failed_their_trial(world: World) -> None:
    world.failure = "cuInit was answered 999"
    with pytest.raises(RefusedError, match="isolation is enforce: cuInit was answered 999"):
        await world.run("p", SHARE, CARD)
    world.mode = IsolationMode.WARN
    await world.start("p")
    assert not is_held(world)
    assert {each["not_held"] for each in world.limits("p")} == {world.failure}


async def test_a_node_tries_the_files_that_a_share_of_its_cards_would_get(world: World) -> None:
    files = world.context().card_files
    (subject,) = world.isolation.subjects(world.node.cards, files)
    assert subject == (world.folder / "libraries", (("libcuda.so.1", host_file(world)),))
    host_file(world).unlink()
    assert [*world.isolation.subjects(world.node.cards, files)] == []
    assert "does not have the driver's libcuda.so.570" in world.isolation.why_not(world.node.cards[0], files)
    world.mode = IsolationMode.OFF
    assert [*world.isolation.subjects(world.node.cards, files)] == []


async def test_a_share_that_cannot_be_held_starts_with_warn_and_not_with_enforce(world: World) -> None:
    world.described = [described()]
    with pytest.raises(
        RefusedError, match=r"cannot be held .* isolation is enforce: NVIDIA's CDI description .* no lib"
    ):
        await world.run("p", SHARE)
    assert world.patches() == 0
    world.mode = IsolationMode.WARN
    await world.start("p")
    assert {each["held_by"] for each in world.limits("p")} == {None}


async def test_a_node_says_beforehand_why_a_share_of_its_cards_cannot_be_held(world: World) -> None:
    files = world.context().card_files
    assert world.isolation.why_not(world.node.cards[0], files) == ""
    world.described = []
    assert "mounts no libcuda.so.1" in world.isolation.why_not(world.node.cards[0], files)
    world.node = Node("n1", (Card(0, "T4", 15104, "GPU-0"),))
    world.described = [described(mounts=[mounted(world)])]
    world.mode = IsolationMode.OFF
    assert world.isolation.why_not(world.node.cards[0], files) == ""


async def test_a_container_that_restarts_gets_a_new_account(world: World) -> None:
    await world.run("p", SHARE, CARD)
    accounts = [Path(mounts(edits)[f"{names.RUN_FOLDER}/account"]) for edits in world.edits("p")]
    before = [account.stat().st_ino for account in accounts]
    with accounts[0].open("wb"):  # its container may do so
        pass
    kept = accounts[0].open("rb")
    await world.start("p")
    assert accounts[0].stat().st_size and accounts[0].stat().st_ino not in before
    kept.close()


async def test_the_files_of_a_share_go_with_its_slot(world: World) -> None:
    await world.run("p", SHARE, CARD)
    assert len(world.shares.slots()) == 2
    world.restart()
    assert len(world.shares.slots()) == 2
    world.delete("p")
    await world.allocator.sweep()
    assert world.shares.slots() == []


async def test_files_that_no_slot_has_are_removed_when_the_agent_starts(world: World) -> None:
    world.shares.write("forgotten", [CardControl(b"A" * 16)])
    world.restart()
    assert world.shares.slots() == []
