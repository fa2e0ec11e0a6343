"""Reads from kubelet's pod-resources socket which container holds which device ids.

It lists no uids and no plain init containers, and lists an id twice that has two NUMA nodes.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import grpc
import grpc.aio

from . import pod_resources_pb2 as wire
from .channel import KubeletError, open_channel, status_text
from .messages import ListedDevices
from .single_flight import SingleFlight

_SERVICE: Final = "/v1.PodResourcesLister"
_CALL_S: Final = 5.0
_PATIENCE_S: Final = 2.0
_REST_S: Final = 0.02
"""kubelet limits all clients together to 100 calls a second."""

_PODS_AT_ONCE: Final = 16

T = TypeVar("T")


class PodResources:
    """Must be created on the event loop that uses it; calls raise KubeletError."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._channel = open_channel(socket)
        self._list = self._channel.unary_unary(
            f"{_SERVICE}/List",
            request_serializer=wire.ListPodResourcesRequest.SerializeToString,
            response_deserializer=wire.ListPodResourcesResponse.FromString,
        )
        self._get_allocatable = self._channel.unary_unary(
            f"{_SERVICE}/GetAllocatableResources",
            request_serializer=wire.AllocatableResourcesRequest.SerializeToString,
            response_deserializer=wire.AllocatableResourcesResponse.FromString,
        )
        self._held = SingleFlight(self._list_devices)
        self._allocatable = SingleFlight(self._list_allocatable)

    async def listed_devices(self) -> tuple[ListedDevices, ...]:
        """Lists the devices of all active pods, by a call that begins now."""
        return await self._held()

    async def allocatable(self) -> Mapping[str, frozenset[str]]:
        """Returns the healthy ids of each resource, held or free."""
        return await self._allocatable()

    async def close(self) -> None:
        await self._channel.close()

    async def _list_devices(self) -> tuple[ListedDevices, ...]:
        answer = await self._retry(lambda: self._list(wire.ListPodResourcesRequest(), timeout=_CALL_S))
        held: list[ListedDevices] = []
        for number, pod in enumerate(answer.pod_resources):
            held += _held_by(pod)
            if number % _PODS_AT_ONCE == 0:
                await asyncio.sleep(0)  # thousands of ids must not delay an Allocate
        return tuple(held)

    async def _list_allocatable(self) -> Mapping[str, frozenset[str]]:
        request = wire.AllocatableResourcesRequest()
        answer = await self._retry(lambda: self._get_allocatable(request, timeout=_CALL_S))
        return _merged(answer.devices)

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        until = asyncio.get_running_loop().time() + _PATIENCE_S
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                is_limited = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                if not is_limited or asyncio.get_running_loop().time() > until:
                    raise KubeletError(_call_failed(self._socket, error)) from error
            await asyncio.sleep(_REST_S)


def _call_failed(socket: Path, error: grpc.aio.AioRpcError) -> str:
    return (
        f"kubelet does not list which container holds which devices ({status_text(error)}): check that it runs, and "
        f"that {socket} is its socket on this node (see --pod-resources)"
    )


def _held_by(pod: wire.PodResources) -> Iterator[ListedDevices]:
    for container in pod.containers:
        for resource, ids in _merged(container.devices).items():
            yield ListedDevices(pod.namespace, pod.name, container.name, resource, ids)


def _merged(entries: Iterable[wire.ContainerDevices]) -> dict[str, frozenset[str]]:
    ids: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        ids[entry.resource_name] += entry.device_ids
    return {resource: frozenset(each) for resource, each in ids.items()}
