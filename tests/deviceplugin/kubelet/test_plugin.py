"""One plugin's server as kubelet calls it, without registration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from deviceplugin.kubelet import device_plugin_pb2 as wire
from deviceplugin.kubelet.channel import KubeletError
from deviceplugin.kubelet.messages import Device
from deviceplugin.kubelet.plugin import Plugin
from tests.waiting import until

from .kubelet import Client
from .stub_handler import StubHandler

RESOURCE = "tencent.com/vcuda-core"


@pytest.fixture
def handler() -> StubHandler:
    return StubHandler()


@pytest.fixture
async def plugin(folder: Path, handler: StubHandler) -> AsyncIterator[Plugin]:
    plugin = Plugin(RESOURCE, handler, folder)
    await plugin.start()
    yield plugin
    await plugin.stop()


@pytest.fixture
async def client(folder: Path, plugin: Plugin) -> AsyncIterator[Client]:
    client = Client(wire.RegisterRequest(endpoint=plugin.endpoint, resource_name=RESOURCE), folder)
    await client.connect()
    yield client
    await client.close()


async def test_kubelet_gets_what_the_handler_grants(client: Client) -> None:
    assert await client.allocate("hc-3", "hc-1") == wire.ContainerAllocateResponse(
        cdi_devices=[wire.CDIDevice(name="halfcard.dev/slot=2")],
        devices=[wire.DeviceSpec(host_path="/host/hc-3", container_path="/dev/nvidia0", permissions="rw")],
        mounts=[wire.Mount(host_path="/host/limits.json", container_path="/etc/limits.json", read_only=True)],
        envs={"RESOURCE": RESOURCE, "IDS": "hc-3 hc-1"},
    )


async def test_a_container_of_another_plugin_restarts_with_that_plugins_answer(
    client: Client, handler: StubHandler
) -> None:
    await client.prestart("GPU-1")
    assert handler.started == []


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
async def test_a_refusal_is_a_failed_precondition_with_its_message(
    sentence: str, seen: str, client: Client, handler: StubHandler
) -> None:
    handler.refusal = sentence
    for call in (client.allocate, client.prestart):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call("hc-1")
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert refused.value.details() == seen
    assert handler.started == []


async def test_an_error_in_the_agent_fails_the_call_of_kubelet(client: Client, handler: StubHandler) -> None:
    with pytest.raises(grpc.aio.AioRpcError):
        await client.allocate()  # the handler of these tests cannot name a device without an id
    assert (await client.allocate("hc-1")).envs
    assert handler.started == []


async def test_containers_start_concurrently_and_allocate_does_not_wait_for_them(
    client: Client, handler: StubHandler
) -> None:
    handler.gate.clear()
    starts = [asyncio.create_task(client.prestart(f"hc-{number}")) for number in range(50)]
    await until(lambda: handler.waiting == 50)
    assert (await client.allocate("hc-1")).envs
    handler.gate.set()
    await asyncio.gather(*starts)
    assert len(handler.started) == 50


async def test_preferred_allocations_are_not_supported(client: Client) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await client.prefer()
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_an_empty_list_is_published_too(plugin: Plugin, client: Client) -> None:
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


async def test_a_closed_stream_is_noticed(plugin: Plugin, client: Client) -> None:
    assert not plugin.was_listened_to and not plugin.is_dropped
    listening = asyncio.create_task(client.listen())
    await until(lambda: plugin.was_listened_to)
    assert not plugin.is_dropped
    await client.close()
    await until(lambda: plugin.is_dropped)
    listening.cancel()


async def test_a_withdrawal_right_after_a_change_publishes_an_empty_list(
    folder: Path, plugin: Plugin, client: Client
) -> None:
    listening = asyncio.create_task(client.listen())
    await until(lambda: plugin.was_listened_to)
    plugin.publish([Device(f"hc-{number}") for number in range(3000)])
    await plugin.withdraw()
    await listening
    assert client.lists[-1] == []
    assert list(folder.iterdir()) == []


def many(tag: str) -> list[Device]:
    """More devices than gRPC buffers for a client that does not read."""
    return [Device(f"{tag}-{number}-{'x' * 40}") for number in range(30_000)]


async def test_of_several_changes_during_a_send_only_the_last_is_sent(plugin: Plugin, client: Client) -> None:
    plugin.publish(many("first"))
    call = client.call()
    await until(lambda: plugin.was_listened_to)
    for tag in ("second", "third", "last"):
        plugin.publish(many(tag))
        await asyncio.sleep(0)
    first_ids = [(await call.read()).devices[0].ID[:4]]
    while first_ids[-1] != "last":
        first_ids.append((await call.read()).devices[0].ID[:4])
    assert first_ids[0] == "firs" and len(first_ids) < 4
    call.cancel()


async def test_a_withdrawal_does_not_wait_for_a_client_that_does_not_read(plugin: Plugin, client: Client) -> None:
    plugin.publish(many("first"))
    call = client.call()
    await until(lambda: plugin.was_listened_to)
    async with asyncio.timeout(3):
        await plugin.withdraw()
    call.cancel()


@pytest.mark.parametrize("name", ["missing", "a-file"])
async def test_a_socket_that_cannot_be_opened_is_reported(folder: Path, name: str) -> None:
    (folder / "a-file").touch()
    plugin = Plugin(RESOURCE, StubHandler(), folder / name)
    with pytest.raises(KubeletError, match=rf"cannot listen at {folder / name}/hc-.*--kubelet-plugins"):
        await plugin.start()
