"""kubelet's side of the two sockets, for tests: it behaves as the real one, its defects included."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from deviceplugin.kubelet import device_plugin_pb2 as plugins
from deviceplugin.kubelet import pod_resources_pb2 as pods
from deviceplugin.kubelet.messages import Device

Context = grpc.aio.ServicerContext[Any, Any]


def _as_device(received: plugins.Device) -> Device:
    assert received.health in {"Healthy", "Unhealthy"}
    nodes = [node.ID for node in received.topology.nodes]
    assert len(nodes) == received.HasField("topology")
    return Device(received.ID, received.health == "Healthy", nodes[0] if nodes else None)


class Client:
    """kubelet's state of one registered plugin."""

    def __init__(self, request: plugins.RegisterRequest, folder: Path) -> None:
        self.request = request
        self.options = plugins.DevicePluginOptions()
        self.lists: list[list[Device]] = []
        self.received_at: list[float] = []
        self._channel = grpc.aio.insecure_channel(
            f"unix:{folder / request.endpoint}", options=[("grpc.use_local_subchannel_pool", 1)]
        )

    def _unary(self, method: str, answer: type[Any]) -> Any:
        return self._channel.unary_unary(
            f"/v1beta1.DevicePlugin/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )

    async def connect(self) -> None:
        async with asyncio.timeout(10):
            await self._channel.channel_ready()
        self.options = await self._unary("GetDevicePluginOptions", plugins.DevicePluginOptions)(plugins.Empty())

    def call(self) -> Any:
        """Opens the stream; tests read from it."""
        return self._channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=plugins.Empty.SerializeToString,
            response_deserializer=plugins.ListAndWatchResponse.FromString,
        )(plugins.Empty())

    async def listen(self) -> None:
        """Reads the stream until the plugin ends it."""
        with contextlib.suppress(grpc.aio.AioRpcError):
            async for received in self.call():
                self.received_at.append(asyncio.get_running_loop().time())
                self.lists.append([_as_device(device) for device in received.devices])

    async def allocate(self, *ids: str) -> plugins.ContainerAllocateResponse:
        request = plugins.AllocateRequest(container_requests=[plugins.ContainerAllocateRequest(devices_ids=ids)])
        answer = await self._unary("Allocate", plugins.AllocateResponse)(request)
        (response,) = answer.container_responses
        assert isinstance(response, plugins.ContainerAllocateResponse)
        return response

    async def prestart(self, *ids: str) -> None:
        request = plugins.PreStartContainerRequest(devices_ids=ids)
        await self._unary("PreStartContainer", plugins.PreStartContainerResponse)(request)

    async def prefer(self) -> None:
        """Requests a resource that no plugin offers."""
        await self._unary("GetPreferredAllocation", plugins.Empty)(plugins.Empty())

    async def close(self) -> None:
        await self._channel.close()


@dataclass
class Kubelet:
    """A kubelet that can be started and stopped.

    Attributes:
        refusal: what it answers to those who register, if anything.
        hangs: it does not answer registrations.
        foreign: ids of plugins that are not ours, by resource.
        holders: what pod-resources tells.
        looks: while it is not set, nothing reports what is allocatable.
        after_look: called when it has looked at what is allocatable, before it answers.
        limited: how many calls of pod-resources it refuses for their number.
        registered: all who ever did, one after the other.
        dropped: how often it found a plugin gone.
    """

    folder: Path
    refusal: str = ""
    hangs: bool = False
    attempts: int = 0
    foreign: dict[str, list[str]] = field(default_factory=dict)
    holders: list[pods.PodResources] = field(default_factory=list)
    looks: asyncio.Event = field(default_factory=asyncio.Event)
    after_look: Callable[[], None] = lambda: None
    limited: int = 0
    registered: list[Client] = field(default_factory=list)
    clients: dict[str, Client] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    dropped: int = 0
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    started_at: float = 0.0
    _servers: list[grpc.aio.Server] = field(default_factory=list)
    _listening: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.plugin_folder.mkdir(exist_ok=True)
        self.answers.set()
        self.looks.set()

    @property
    def plugin_folder(self) -> Path:
        return self.folder / "p"

    @property
    def pod_resources(self) -> Path:
        return self.folder / "r.sock"

    def sockets(self) -> set[str]:
        return {file.name for file in self.plugin_folder.iterdir()} - {"kubelet.sock"}

    def devices(self, resource: str) -> list[Device]:
        """Returns the last devices; none if no plugin serves the resource."""
        client = self.clients.get(resource)
        return client.lists[-1] if client and client.lists else []

    async def start(self) -> None:
        for left in self.plugin_folder.iterdir():
            left.unlink(missing_ok=True)
        self.started_at = asyncio.get_running_loop().time()
        lister = {"List": self._list, "GetAllocatableResources": self._allocatable}
        await self._serve(self.pod_resources, "v1.PodResourcesLister", lister, pods.ListPodResourcesRequest)
        registration = {"Register": self._register}
        await self._serve(
            self.plugin_folder / "kubelet.sock", "v1beta1.Registration", registration, plugins.RegisterRequest
        )

    async def _serve(self, socket: Path, service: str, methods: dict[str, Any], request: type[Any]) -> None:
        handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            name: grpc.unary_unary_rpc_method_handler(
                method, request_deserializer=request.FromString, response_serializer=lambda it: it.SerializeToString()
            )
            for name, method in methods.items()
        }
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        self._servers.append(server)

    async def stop(self) -> None:
        for client in list(self.clients.values()):
            await client.close()
        self.clients.clear()
        for server in self._servers:
            await server.stop(None)
        self._servers.clear()
        if self._listening:
            await asyncio.wait(self._listening)

    async def drop(self, resource: str) -> None:
        await self.clients.pop(resource).close()

    async def _register(self, request: plugins.RegisterRequest, context: Context) -> plugins.Empty:
        self.attempts += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.refusal:
            await context.abort(grpc.StatusCode.UNKNOWN, self.refusal)
        client = Client(request, self.plugin_folder)
        self.clients[request.resource_name] = client
        await client.connect()
        self.registered.append(client)
        listening = asyncio.create_task(self._listen(client))
        self._listening.add(listening)
        listening.add_done_callback(self._listening.discard)
        return plugins.Empty()

    async def _listen(self, client: Client) -> None:
        """Like the real one, it finds the plugin that left by the resource's name."""
        await client.listen()
        mistaken = self.clients.pop(client.request.resource_name, None)
        if mistaken:
            self.dropped += 1
            await mistaken.close()

    async def _list(self, _request: Any, context: Context) -> pods.ListPodResourcesResponse:
        await self._limit("List", context)
        answer = pods.ListPodResourcesResponse(pod_resources=self.holders)
        await self.answers.wait()
        return answer

    async def _allocatable(self, _request: Any, context: Context) -> pods.AllocatableResourcesResponse:
        await self._limit("GetAllocatableResources", context)
        await self.looks.wait()
        known = {resource: self._healthy(resource) for resource in self.clients} | self.foreign
        self.after_look()
        return pods.AllocatableResourcesResponse(
            devices=[entry(resource, each) for resource, ids in known.items() for each in ids]
        )

    def _healthy(self, resource: str) -> list[str]:
        return [device.id for device in self.devices(resource) if device.healthy]

    async def _limit(self, method: str, context: Context) -> None:
        self.asked.append(method)
        if self.limited:
            self.limited -= 1
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")


def entry(resource: str, *ids: str) -> pods.ContainerDevices:
    return pods.ContainerDevices(resource_name=resource, device_ids=ids)


def holder(pod: str, entries: Sequence[pods.ContainerDevices], container: str = "main") -> pods.PodResources:
    containers = [pods.ContainerResources(name=container, devices=entries)]
    return pods.PodResources(namespace="team", name=pod, containers=containers)


@contextlib.asynccontextmanager
async def kubelet(folder: Path) -> AsyncIterator[Kubelet]:
    one = Kubelet(folder)
    await one.start()
    try:
        yield one
    finally:
        one.answers.set()
        one.looks.set()
        await one.stop()
