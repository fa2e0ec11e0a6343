"""An allocator on a node, with an API server over HTTP, a model of kubelet's device manager, and its own folders."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from deviceplugin.allocate.allocator import Allocator, Injector, NodeContext
from deviceplugin.allocate.slots import Slots, slot_name
from deviceplugin.inject.card_files import CardFiles, Description
from deviceplugin.inject.cdi import CdiInjector
from deviceplugin.isolation.isolation import Isolation
from deviceplugin.isolation.share_files import ShareFiles
from deviceplugin.kubelet.messages import ListedDevices
from deviceplugin.node_pods import NodePods
from deviceplugin.options import AgentOptions
from deviceplugin.pod_status import NodePod
from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.cards import Node
from halfcard.dialects import Dialects
from halfcard.isolation.mode import IsolationMode
from halfcard.placing.pod_facts import PodFacts
from halfcard.pod.stored_pod import StoredPod
from kube.api.access import Access
from kube.api.calls import ApiCalls
from tests.builders import PodBuilder
from tests.extender.pod_server import PodServer, serving_pods
from tests.halfcard.placing.examples import node

from .device_manager import DeviceManager, Given

RESOURCES: Final = frozenset(
    {names.VCUDA_CORE, names.VCUDA_MEMORY, names.TUYA_SGPU, names.NVIDIA_GPU, names.NVIDIA_GPU_SHARED}
)
OPTIONS: Final = AgentOptions(Dialects(), CapacityRules(), ())


@dataclass
class World:
    """A node with kubelet, an API server and the agent's allocator.

    Attributes:
        living: pods with processes.
        looked_for: pods whose processes were looked for.
        failure: why the trial of the isolation libraries has failed.
        described: NVIDIA's own descriptions of the cards.
        watched: whether the watch sees what is stored.
        has_checkpoint: whether kubelet's can be read.
    """

    server: PodServer
    folder: Path
    node: Node = field(default_factory=lambda: node(2))
    manager: DeviceManager = field(default_factory=lambda: DeviceManager(0, RESOURCES))
    living: set[str] = field(default_factory=set)
    looked_for: set[str] = field(default_factory=set)
    watched: bool = True
    single: frozenset[str] = frozenset()
    has_checkpoint: bool = True
    mode: IsolationMode = IsolationMode.OFF
    failure: str = ""
    described: list[Description] = field(default_factory=list)
    given: dict[str, Given] = field(default_factory=dict)
    clock: int = 0

    def __post_init__(self) -> None:
        self.shares = ShareFiles(self.folder / "shares")
        self.isolation = Isolation(
            lambda: self.mode, lambda: self.folder / "libraries", self.shares.folder, lambda _: self.failure
        )
        self.calls = ApiCalls(Access("127.0.0.1", self.server.port))
        for file in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
            (self.folder / file).touch()
        self.restart()

    def restart(self, injector: Injector | None = None) -> None:
        """Starts a new process of the agent."""
        self.pods = NodePods(Access("127.0.0.1", self.server.port), "n1", OPTIONS.dialects, lambda: None)
        self.watch()
        self.slots = Slots(self.folder / "cdi", self.folder / "state", self.shares)
        self.slots.load()
        self.allocator = Allocator(self.context(), OPTIONS, self.slots, injector or CdiInjector())

    def context(self) -> NodeContext:
        return NodeContext(
            listed_devices=self.listed_devices,
            pods_with_ids=self.pods_with_ids,
            calls=self.calls,
            node=lambda: self.node,
            pods=self.pods,
            with_processes=self.with_processes,
            card_files=CardFiles(self.folder, lambda: self.described),
            hold=self.isolation.hold,
            single_id_resources=lambda: self.single,
            now_ns=self.now_ns,
        )

    async def listed_devices(self) -> tuple[ListedDevices, ...]:
        await asyncio.sleep(0)
        return self.manager.held()

    def pods_with_ids(self, resource: str, ids: frozenset[str]) -> dict[str, PodFacts | None]:
        if not (self.has_checkpoint and self.watched):
            return {}
        self.watch()
        seen = {pod.kubelet_uid: facts for pod, facts in self.pods}
        return {uid: seen.get(uid) for uid in self.manager.holders(resource, ids)}

    def watch(self) -> None:
        """Reports the stored pods as the watch does; then the advertiser computes what they use."""
        stored = [msgspec.convert(pod, NodePod) for pod in self.server.pods.values()] if self.watched else []
        if {pod.meta.resource_version for pod in stored} != {facts.version for _, facts in self.pods}:
            self.pods._list(stored)
            self.pods.usage(self.node)

    def with_processes(self, uids: Collection[str]) -> Collection[str]:
        self.looked_for |= set(uids)
        return self.living & set(uids)

    def now_ns(self) -> int:
        self.clock += 1
        return self.clock

    # --- what kubelet does --------------------------------------------------------------------------------------------

    def bind(self, name: str, asks: PodBuilder, cards: Mapping[str, list[str]] | None = None, **words: str) -> None:
        """Stores a pod as the extender binds it, with the cards of each container, or as another scheduler does."""
        obj = asks.specified(nodeName=words.get("on", "n1")).manifest
        record = {names.PLACEMENT: json.dumps({"node": "n1", "cards": cards})} if cards is not None else {}
        obj["metadata"] |= {
            "name": name,
            "namespace": "team",
            "uid": words.get("uid", f"uid-{name}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {**obj["metadata"].get("annotations", {}), **record},
        }
        self.server.put(obj | {"status": {"phase": words.get("phase", "Pending")}})

    def admit(self, name: str) -> None:
        self.watch()
        self.given[name] = self.manager.admit(self.stored(name))
        for (_, resource), ids in self.given[name].items():
            self.allocator.allocate(resource, sorted(ids))

    async def start(self, name: str, container: str = "containers-0") -> None:
        self.living.add(self.stored(name).kubelet_uid)
        for resource, ids in self.ids(name, container):
            await self.allocator.prestart(resource, ids)

    async def run(
        self, name: str, asks: PodBuilder, cards: Mapping[str, list[str]] | None = None, **words: str
    ) -> None:
        self.bind(name, asks, cards, **words)
        self.admit(name)
        await self.start(name)

    def delete(self, name: str, *, by_force: bool = False) -> None:
        """Deletes a pod by force; its containers run for a while."""
        uid = self.stored(name).meta.uid
        self.manager.forget(uid)
        del self.server.pods[name]
        if not by_force:
            self.living.discard(uid)

    # --- what is there ------------------------------------------------------------------------------------------------

    def stored(self, name: str) -> StoredPod:
        return msgspec.convert(self.server.pods[name], StoredPod)

    def ids(self, name: str, container: str) -> Iterator[tuple[str, list[str]]]:
        return ((key[1], sorted(ids)) for key, ids in self.given[name].items() if key[0] == container)

    def edits(self, name: str, container: str = "containers-0") -> list[dict[str, Any]]:
        """The edits that the runtime would make, by resource."""
        found = []
        for resource, ids in self.ids(name, container):
            file = self.folder / "cdi" / f"halfcard.dev-slot_{slot_name(resource, ids)}.json"
            found.append(json.loads(file.read_text())["devices"][0]["containerEdits"])
        return found

    def limits(self, name: str, container: str = "containers-0") -> list[Any]:
        """The limits that the container would read, by resource."""
        files = [mounts(edits)[names.LIMITS_FILE] for edits in self.edits(name, container)]
        return [json.loads(Path(file).read_bytes()) for file in files]

    def cards(self, name: str, container: str = "containers-0") -> set[str]:
        """The cards that the container would see; all of its slots must agree."""
        found = [dict(line.split("=", 1) for line in edits["env"]) for edits in self.edits(name, container)]
        return {each[names.VISIBLE_DEVICES] for each in found}

    def patches(self) -> int:
        return [call.method for call in self.server.calls].count("PATCH")


def mounts(edits: Mapping[str, Any]) -> dict[str, str]:
    """The files and folders of the node, by their place in the container."""
    return {each["containerPath"]: each["hostPath"] for each in edits["mounts"]}


@asynccontextmanager
async def running_world() -> AsyncIterator[World]:
    with serving_pods() as server, TemporaryDirectory() as folder:
        world = World(server, Path(folder))
        try:
            yield world
        finally:
            world.calls.close()
