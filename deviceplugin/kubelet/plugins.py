"""Registers all resources of the node with kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .kubelet_socket import KubeletSocket
from .messages import AllocationHandler, Device
from .plugin import SOCKET_PREFIX
from .pod_resources import PodResources
from .served_resource import ServedResource


class Plugins:
    """Must be created on the event loop; `folder` is kubelet's folder of device plugins.

    `registered` is called with a resource each time that kubelet has registered it.
    """

    def __init__(
        self,
        handler: AllocationHandler,
        folder: Path,
        pod_resources: PodResources,
        registered: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._handler = handler
        self._registered = registered
        self._kubelet = KubeletSocket(folder)
        self._pod_resources = pod_resources
        self._resources: dict[str, ServedResource] = {}
        self._idle: asyncio.Queue[ServedResource] = asyncio.Queue()

    def offer(self, supply: Mapping[str, Sequence[Device]]) -> None:
        """Sets the offered resources with their devices; resources that are missing are withdrawn."""
        for resource in supply.keys() - self._resources.keys():
            presence = ServedResource(resource, self._handler, self._kubelet, self._pod_resources, self._registered)
            self._resources[resource] = presence
            self._idle.put_nowait(presence)
        for resource, presence in self._resources.items():
            presence.offer(supply.get(resource))

    def problems(self) -> tuple[str, ...]:
        """Returns why offered resources are not available, without duplicates."""
        return tuple(dict.fromkeys(each.problem for each in self._resources.values() if each.problem))

    async def run(self) -> None:
        """Runs until it is cancelled; kubelet then sees the plugins gone, and containers keep what they hold."""
        self._idle = asyncio.Queue()
        for presence in self._resources.values():
            self._idle.put_nowait(presence)
        for left_behind in self._kubelet.folder.glob(f"{SOCKET_PREFIX}*.sock"):
            left_behind.unlink(missing_ok=True)
        async with asyncio.TaskGroup() as group:
            while True:
                presence = await self._idle.get()
                group.create_task(presence.run(), name=f"serve {presence.resource}")
