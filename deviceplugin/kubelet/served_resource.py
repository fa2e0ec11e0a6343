"""Keeps one resource registered at kubelet as long as it is offered.

Invariant: when kubelet has lost the plugin it registers again; a resource that another plugin serves is not touched.
kubelet confuses two plugins of one resource: it uses the list of one with the other, and one that leaves removes both.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from deviceplugin.device_ids import is_ours

from .channel import KubeletError
from .kubelet_socket import LOOK_EVERY_S, Identity, KubeletSocket
from .messages import AllocationHandler, Device
from .plugin import Plugin
from .pod_resources import PodResources
from .registration import register

_LISTENS_WITHIN_S: Final = 10.0
_KUBELETS_START_S: Final = 10.0
_HASTY_LOOK_S: Final = 0.05
_LOOK_S: Final = 10.0
_LOOKS_EVERY_S: Final = 30.0
_SHORTEST_REST_S: Final = 0.02
_LONGEST_REST_S: Final = 5.0

_NOT_THERE: Final = (
    "kubelet's socket {} does not exist: nothing is offered until it does; if kubelet runs, give the agent its "
    "folder of device plugins (see --kubelet-plugins)"
)
_TAKEN: Final = (
    "{} is served by another device plugin of this node (its ids are like {!r}), so the agent does not serve it: "
    "remove that plugin from the node, or the resource from node_resources in the settings"
)
_BEGAN_ANEW: Final = "kubelet restarted while {} was being registered: it is registered again"
_NOT_HEARD: Final = "kubelet registered {} and then did not ask for its devices: it is registered again"


class ServedResource:
    """Must be created on the event loop.

    Attributes:
        problem: why pods cannot get this resource from us; empty where they can.
    """

    def __init__(
        self,
        resource: str,
        handler: AllocationHandler,
        kubelet: KubeletSocket,
        pod_resources: PodResources,
        registered: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Calls `registered` with the resource each time that kubelet has registered it and listens."""
        self.resource = resource
        self.problem = ""
        self._handler = handler
        self._kubelet = kubelet
        self._pod_resources = pod_resources
        self._registered = registered
        self._devices: tuple[Device, ...] | None = None
        self._changed = asyncio.Event()

    def offer(self, devices: Sequence[Device] | None) -> None:
        """Sets the devices; None removes the resource from the node."""
        self._devices = None if devices is None else tuple(devices)
        self._changed.set()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        now = asyncio.get_running_loop().time
        rest = 0.0
        while True:
            await self._until_offered()
            seen, began = self._kubelet.identity(), now()
            await self._serve(seen)
            rest = _longer(rest) if now() - began < _LONGEST_REST_S else _SHORTEST_REST_S
            if await self._kubelet.is_recreated(seen, rest):
                rest = 0.0

    async def _until_offered(self) -> None:
        while self._devices is None:
            self.problem = ""
            await self._until_changed()

    async def _serve(self, seen: Identity) -> None:
        """Serves until kubelet drops the plugin, or nothing is offered any more."""
        plugin = Plugin(self.resource, self._handler, self._kubelet.folder, self._changed.set)
        try:
            await self._register_while(seen, plugin)
            self.problem = ""
            await self._keep_publishing(plugin)
        except KubeletError as error:
            self.problem = str(error)
        finally:
            await plugin.stop()

    async def _register_while(self, seen: Identity, plugin: Plugin) -> None:
        """Registers; fails early where kubelet restarts, which removes our socket and waits for it for 10 seconds."""
        if seen is None:
            raise KubeletError(_NOT_THERE.format(self._kubelet.path))
        registering = asyncio.create_task(self._register(plugin), name=f"register {self.resource}")
        try:
            while not registering.done():
                if self._kubelet.identity() != seen:
                    raise KubeletError(_BEGAN_ANEW.format(self.resource))
                await asyncio.wait((registering,), timeout=LOOK_EVERY_S)
        finally:
            registering.cancel()
            await asyncio.wait((registering,))
        registering.result()

    async def _register(self, plugin: Plugin) -> None:
        """Registers quickly at a kubelet that starts: without devices it fails pods that have init containers."""
        looking = asyncio.create_task(self._foreign_id(plugin), name=f"look for another plugin of {self.resource}")
        is_hasty = self._kubelet.is_new(_KUBELETS_START_S)
        await asyncio.wait((looking,), timeout=_HASTY_LOOK_S if is_hasty else _LOOK_S)
        if looking.done() and (foreign_id := looking.result()):
            raise KubeletError(_TAKEN.format(self.resource, foreign_id))
        plugin.publish(self._devices or ())
        await plugin.start()
        await register(self._kubelet.path, plugin.endpoint, self.resource)
        try:
            async with asyncio.timeout(_LISTENS_WITHIN_S):
                while not plugin.was_listened_to:
                    await self._until_changed()
        except TimeoutError:
            raise KubeletError(_NOT_HEARD.format(self.resource)) from None
        self._registered(self.resource)

    async def _keep_publishing(self, plugin: Plugin) -> None:
        """Publishes each change; while another plugin has the resource, only checks for its end."""
        is_taken = False
        while not plugin.is_dropped:
            devices = self._devices  # a change during the check is published after the next one
            foreign_id = await self._foreign_id(plugin)
            if foreign_id:
                is_taken, self.problem = True, _TAKEN.format(self.resource, foreign_id)
            elif is_taken:
                return  # registers again
            elif devices is None:
                await plugin.withdraw()
            else:
                plugin.publish(devices)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOKS_EVERY_S):
                    await self._until_changed()

    async def _until_changed(self) -> None:
        """Waits until something is offered, or kubelet starts or stops listening; at once if that happened before."""
        await self._changed.wait()
        self._changed.clear()

    async def _foreign_id(self, plugin: Plugin) -> str:
        """Returns an id that another plugin offers, without our format; empty for none."""
        try:
            allocatable = await self._pod_resources.allocatable()
        except KubeletError:
            return ""  # a kubelet that has just started knows no plugin; the next check comes soon
        mine = {device.id for device in plugin.devices}
        others = allocatable.get(self.resource, frozenset()) - mine
        return min((each for each in others if not is_ours(each)), default="")


def _longer(rest: float) -> float:
    return min(max(2 * rest, _SHORTEST_REST_S), _LONGEST_REST_S)
