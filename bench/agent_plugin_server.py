"""`python -m bench.agent_plugin_server FOLDER`: what `bench.agent_plugin` calls, in a process of its own.

The agent's plugins for eight cards of 80 GB, a plugin that answers a constant, and a kubelet's pod-resources that
always lists the same 200 pods.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
import uvloop

from deviceplugin.allocate.slots import Slot, Slots, slot_name
from deviceplugin.inject.cdi import VERSION, CdiInjector
from deviceplugin.isolation.share_files import ShareFiles
from deviceplugin.kubelet import pod_resources_pb2 as wire
from deviceplugin.kubelet.messages import Device, Granted
from deviceplugin.kubelet.plugin import Plugin
from halfcard import names

COUNTS: Final = {names.VCUDA_CORE: 800, names.VCUDA_MEMORY: 2560}
HELD: Final = {names.VCUDA_CORE: 30, names.VCUDA_MEMORY: 20}
PODS: Final = 200
CARDS: Final = 8
FLOOR: Final = "floor"

NEW: Final = "hc-1000000"  # ids of ours: a plugin leaves all others alone
SICK: Final = "hc-1000001"
"""Ids that make PreStartContainer replace all ids, or change the health of one card's; others just fill the slot."""


def held_ids(resource: str, pod: int) -> list[str]:
    first = pod * HELD[resource]
    return [f"hc-{number}" for number in range(first, first + HELD[resource])]


class Constant:
    """Answers constants: the floor."""

    def allocate(self, _resource: str, _ids: Sequence[str]) -> Granted:
        return Granted(cdi=("halfcard.dev/slot=0",))

    async def prestart(self, _resource: str, _ids: Sequence[str]) -> None:
        pass


class SlotHandler:
    """Answers Allocate like the agent; PreStartContainer fills the slot."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._injector = CdiInjector()
        self._names = count()
        self.plugins: dict[str, Plugin] = {}

    def allocate(self, resource: str, ids: Sequence[str]) -> Granted:
        self._slots.retire(resource, ids)
        return self._injector.answer(slot_name(resource, ids))

    async def prestart(self, resource: str, ids: Sequence[str]) -> None:
        if ids[0] in {NEW, SICK}:
            self.plugins[resource].publish(self._new(resource) if ids[0] == NEW else self._sick(resource))
        else:
            self._fill(Slot("team", ids[0], f"uid-{ids[0]}", ("main",), resource, tuple(ids), {}, 0))

    def _new(self, resource: str) -> list[Device]:
        first = next(self._names) * COUNTS[resource]
        return [Device(f"hc-{first + number}", numa=0) for number in range(COUNTS[resource])]

    def _sick(self, resource: str) -> list[Device]:
        found = self.plugins[resource].devices
        of_card = len(found) // CARDS
        return [*(each._replace(healthy=not each.healthy) for each in found[:of_card]), *found[of_card:]]

    def _fill(self, slot: Slot) -> None:
        self._slots.write(slot, {"env": ["NVIDIA_VISIBLE_DEVICES=GPU-1"]}, VERSION, b"{}")


def _listed_devices() -> bytes:
    """Encodes the answer of pod-resources, with one entry for each id."""
    answer = wire.ListPodResourcesResponse()
    for pod in range(PODS):
        container = answer.pod_resources.add(name=f"pod-{pod}", namespace="team").containers.add(name="main")
        for resource in HELD:
            for each in held_ids(resource, pod):
                container.devices.add(resource_name=resource, device_ids=[each])
    return answer.SerializeToString()


async def _serve_pod_resources(socket: Path) -> grpc.aio.Server:
    listed = _listed_devices()

    async def answer(_request: bytes, _context: Any) -> bytes:
        return listed

    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {"List": grpc.unary_unary_rpc_method_handler(answer)}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1.PodResourcesLister", handlers),))
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    return server


async def main(folder: Path) -> None:
    slots = Slots(folder / "cdi", folder / "state", ShareFiles(folder / "shares"))
    slots.load()
    handler = SlotHandler(slots)
    handler.plugins = {resource: Plugin(resource, handler, folder) for resource in COUNTS}
    plugins = [*handler.plugins.values(), Plugin(FLOOR, Constant(), folder)]
    for plugin in plugins:
        await plugin.start()
    _pod_resources = await _serve_pod_resources(folder / "pods.sock")
    gc.freeze()
    print(json.dumps({plugin.resource: plugin.endpoint for plugin in plugins}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))
