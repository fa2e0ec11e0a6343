"""One plugin's server as kubelet calls it, without registration."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest

from deviceplugin.kubelet import device_plugin_pb2 as wire
from deviceplugin.kubelet.channel import KubeletError
from deviceplugin.kubelet.plugin import Device, Plugin

from .desk import Desk
from .kubelet import Client, until

Story = Callable[[Plugin, Client, Desk], Awaitable[None]]
RESOURCE = "tencent.com/vcuda-core"


def tell(folder: Path, story: Story) -> None:
    async def run() -> None:
        desk = Desk()
        plugin = Plugin(RESOURCE, desk, folder)
        await plugin.start()
        client = Client(wire.RegisterRequest(endpoint=plugin.endpoint, resource_name=RESOURCE), folder)
        try:
            await client.connect()
            await story(plugin, client, desk)
        finally:
            await client.close()
            await plugin.stop()

    asyncio.run(run())


def test_what_the_desk_grants_is_what_kubelet_gets(folder: Path) -> None:
    async def story(_plugin: Plugin, client: Client, _desk: Desk) -> None:
        assert await client.allocate("hc-3", "hc-1") == wire.ContainerAllocateResponse(
            cdi_devices=[wire.CDIDevice(name="halfcard.dev/slot=2")],
            devices=[wire.DeviceSpec(host_path="/host/hc-3", container_path="/dev/nvidia0", permissions="rw")],
            mounts=[wire.Mount(host_path="/host/limits.json", container_path="/etc/limits.json", read_only=True)],
            envs={"RESOURCE": RESOURCE, "IDS": "hc-3 hc-1"},
        )

    tell(folder, story)


@pytest.mark.parametrize(
    ("sentence", "seen"),
    [
        ("the card is full: take another", "the card is full: take another"),
        ("die Karte ist für Größeres da — 卡已满 🂡", "die Karte ist für Größeres da — 卡已满 🂡"),
        ("two\nlines\x1b[31m", r"two\nlines\x1b[31m"),
        ("half a \ud83c pair", r"half a \ud83c pair"),
        ("x" * 5000, "x" * 897 + "…"),
        ("卡" * 5000, "卡" * 299 + "…"),
    ],
)
def test_a_refusal_is_a_failed_precondition_with_the_sentence(folder: Path, sentence: str, seen: str) -> None:
    async def story(_plugin: Plugin, client: Client, desk: Desk) -> None:
        desk.refusal = sentence
        for call in (client.allocate, client.prestart):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call("hc-1")
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
            assert refused.value.details() == seen
        assert desk.started == []

    tell(folder, story)


def test_a_failure_of_ours_is_a_failure_for_kubelet(folder: Path) -> None:
    async def story(_plugin: Plugin, client: Client, desk: Desk) -> None:
        with pytest.raises(grpc.aio.AioRpcError):
            await client.allocate()  # the desk of these tests cannot name a device without an id
        assert (await client.allocate("hc-1")).envs
        assert desk.started == []

    tell(folder, story)


def test_containers_start_side_by_side_and_allocate_does_not_wait_for_them(folder: Path) -> None:
    async def story(_plugin: Plugin, client: Client, desk: Desk) -> None:
        desk.gate.clear()
        starts = [asyncio.create_task(client.prestart(f"hc-{number}")) for number in range(50)]
        await until(lambda: desk.waiting == 50)
        assert (await client.allocate("hc-1")).envs
        desk.gate.set()
        await asyncio.gather(*starts)
        assert len(desk.started) == 50

    tell(folder, story)


def test_preferences_are_not_offered(folder: Path) -> None:
    async def story(_plugin: Plugin, client: Client, _desk: Desk) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.prefer()
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED

    tell(folder, story)


def test_a_list_of_nothing_is_told_too(folder: Path) -> None:
    async def story(plugin: Plugin, client: Client, _desk: Desk) -> None:
        listening = asyncio.create_task(client.listen())
        await until(lambda: client.lists == [[]])
        plugin.publish([Device("hc-1")])
        await until(lambda: client.lists == [[], [Device("hc-1")]])
        plugin.publish([Device("hc-1")])
        plugin.publish([])
        await until(lambda: len(client.lists) == 3)
        assert client.lists[-1] == []
        await plugin.stop()
        await listening

    tell(folder, story)


def test_who_listens_and_leaves_is_noticed(folder: Path) -> None:
    async def story(plugin: Plugin, client: Client, _desk: Desk) -> None:
        assert not plugin.is_heard and not plugin.is_dropped
        listening = asyncio.create_task(client.listen())
        await until(lambda: plugin.is_heard)
        assert not plugin.is_dropped
        await client.close()
        await until(lambda: plugin.is_dropped)
        listening.cancel()

    tell(folder, story)


def test_a_withdrawal_tells_an_empty_list_however_soon_after_a_change(folder: Path) -> None:
    async def story(plugin: Plugin, client: Client, _desk: Desk) -> None:
        listening = asyncio.create_task(client.listen())
        await until(lambda: plugin.is_heard)
        plugin.publish([Device(f"hc-{number}") for number in range(3000)])
        await plugin.withdraw()
        await listening
        assert client.lists[-1] == []

    tell(folder, story)
    assert list(folder.iterdir()) == []


def many(tag: str) -> list[Device]:
    """More than gRPC takes at once from who is not read."""
    return [Device(f"{tag}-{number}-{'x' * 40}") for number in range(30_000)]


def test_of_what_changes_while_kubelet_is_being_told_the_last_is_told(folder: Path) -> None:
    async def story(plugin: Plugin, client: Client, _desk: Desk) -> None:
        plugin.publish(many("first"))
        call = client.call()
        await until(lambda: plugin.is_heard)
        for tag in ("second", "third", "last"):
            plugin.publish(many(tag))
            await asyncio.sleep(0)
        told = [(await call.read()).devices[0].ID[:4]]
        while told[-1] != "last":
            told.append((await call.read()).devices[0].ID[:4])
        assert told[0] == "firs" and len(told) < 4
        call.cancel()

    tell(folder, story)


def test_a_withdrawal_does_not_wait_for_who_does_not_read(folder: Path) -> None:
    async def story(plugin: Plugin, client: Client, _desk: Desk) -> None:
        plugin.publish(many("first"))
        call = client.call()
        await until(lambda: plugin.is_heard)
        async with asyncio.timeout(3):
            await plugin.withdraw()
        call.cancel()

    tell(folder, story)


@pytest.mark.parametrize("name", ["missing", "a-file"])
def test_where_it_cannot_listen_it_says_so(folder: Path, name: str) -> None:
    (folder / "a-file").touch()

    async def run() -> None:
        plugin = Plugin(RESOURCE, Desk(), folder / name)
        with pytest.raises(KubeletError, match=rf"cannot listen at {folder / name}/hc-.*--kubelet-plugins"):
            await plugin.start()

    asyncio.run(run())
