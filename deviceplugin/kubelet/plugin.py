"""The server that kubelet calls for one resource.

Invariant: kubelet gets all ids at once, and again after each change; a refusal reaches it as a sentence, and a failure
is never answered as a success.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from halfcard.problems import clipped, printable

from ..device_ids import is_ours
from . import device_plugin_pb2 as wire
from .channel import KubeletError
from .messages import AllocationHandler, Device, Granted, RefusedError
from .registration import OPTIONS

SOCKET_PREFIX: Final = "hc-"

_SERVICE: Final = "v1beta1.DevicePlugin"
_GOODBYE_S: Final = 1.0
_SENTENCE_BYTES: Final = 900
"""An Event takes 1024 bytes; a gRPC header takes 8192, with nine for each Chinese character."""

Context = grpc.aio.ServicerContext[Any, Any]
Asked = TypeVar("Asked", bound=Message)
_STARTED: Final = wire.PreStartContainerResponse()


class Plugin:
    """A plugin on its own socket, which is used once: kubelet confuses a plugin that returns with the one that left.

    Attributes:
        endpoint: the name of the socket.
        devices: the last published devices.
        was_listened_to: whether kubelet has called ListAndWatch.
    """

    def __init__(
        self, resource: str, handler: AllocationHandler, folder: Path, changed: Callable[[], None] = lambda: None
    ) -> None:
        """Calls `changed` when kubelet starts to listen and when it stops."""
        self.resource = resource
        self.endpoint = f"{SOCKET_PREFIX}{secrets.token_hex(4)}.sock"
        self.devices: tuple[Device, ...] = ()
        self.was_listened_to = False
        self._handler = handler
        self._path = folder / self.endpoint
        self._changed = changed
        self._listeners = 0
        self._message = b""
        self._is_withdrawn = False
        self._news = asyncio.Event()
        self._no_listeners = asyncio.Event()
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, self._methods()),))

    @property
    def is_dropped(self) -> bool:
        """Returns whether kubelet listened and has stopped."""
        return self.was_listened_to and not self._listeners

    async def start(self) -> None:
        """Raises KubeletError where it cannot listen."""
        try:
            self._server.add_insecure_port(f"unix:{self._path}")
        except RuntimeError as error:
            raise KubeletError(
                f"cannot listen at {self._path} for kubelet's calls ({error}): the folder must be kubelet's folder of "
                "device plugins, mounted where we may write (see --kubelet-plugins)"
            ) from error
        await self._server.start()

    def publish(self, devices: Sequence[Device]) -> None:
        """Publishes all devices. While kubelet reads a list, only the last of several new ones is sent."""
        if tuple(devices) != self.devices:
            self.devices = tuple(devices)
            self._message = _as_message(self.devices)
            self._send()

    async def withdraw(self) -> None:
        """Publishes an empty list, or kubelet would keep the resource for 5 minutes; then stops."""
        self.publish(())
        self._is_withdrawn = True
        self._send()
        if self._listeners:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GOODBYE_S):
                    await self._no_listeners.wait()
        await self.stop()

    async def stop(self) -> None:
        """Stops at once and publishes nothing: containers keep what they hold."""
        await self._server.stop(None)

    def _send(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # --- what kubelet calls -------------------------------------------------------------------------------------------

    def _methods(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        return {
            "GetDevicePluginOptions": _answering(self._options, wire.Empty),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(self._list_and_watch, wire.Empty.FromString),
            "Allocate": _answering(self._allocate, wire.AllocateRequest),
            "PreStartContainer": _answering(self._prestart, wire.PreStartContainerRequest),
        }

    async def _options(self, _request: wire.Empty, _context: Context) -> wire.DevicePluginOptions:
        return OPTIONS

    async def _list_and_watch(self, _request: wire.Empty, context: Context) -> None:
        self._listen(1)
        try:
            is_last = False
            while not is_last:
                news, is_last = self._news, self._is_withdrawn
                await context.write(self._message)
                if not is_last:
                    await news.wait()
        finally:
            self._listen(-1)

    def _listen(self, more: int) -> None:
        self.was_listened_to = True
        self._listeners += more
        if not self._listeners:
            self._no_listeners.set()
        self._changed()

    async def _allocate(self, request: wire.AllocateRequest, context: Context) -> wire.AllocateResponse:
        try:
            granted = [self._handler.allocate(self.resource, asked.devices_ids) for asked in request.container_requests]
        except RefusedError as refusal:
            await _refuse(context, refusal)
        return wire.AllocateResponse(container_responses=map(_as_response, granted))

    async def _prestart(
        self, request: wire.PreStartContainerRequest, context: Context
    ) -> wire.PreStartContainerResponse:
        if not all(map(is_ours, request.devices_ids)):
            return _STARTED  # another plugin allocated them, and kubelet starts the container with that plugin's answer
        try:
            await self._handler.prestart(self.resource, request.devices_ids)
        except RefusedError as refusal:
            await _refuse(context, refusal)
        return _STARTED


def _answering(
    behaviour: Callable[[Asked, Context], Awaitable[Message]], request: type[Asked]
) -> grpc.RpcMethodHandler[Asked, Message]:
    return grpc.unary_unary_rpc_method_handler(
        behaviour, request_deserializer=request.FromString, response_serializer=_serialized
    )


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


async def _refuse(context: Context, refusal: RefusedError) -> NoReturn:
    sentence = clipped(printable(str(refusal), _SENTENCE_BYTES), _SENTENCE_BYTES)
    await context.abort(grpc.StatusCode.FAILED_PRECONDITION, sentence)


def _as_response(granted: Granted) -> wire.ContainerAllocateResponse:
    return wire.ContainerAllocateResponse(
        cdi_devices=[wire.CDIDevice(name=name) for name in granted.cdi],
        devices=[
            wire.DeviceSpec(host_path=host, container_path=container, permissions="rw")
            for host, container in granted.devices
        ],
        mounts=[
            wire.Mount(host_path=host, container_path=container, read_only=True) for host, container in granted.mounts
        ],
        envs=granted.env,
    )


def _as_message(devices: Sequence[Device]) -> bytes:
    answer = wire.ListAndWatchResponse()
    for device in devices:
        added = answer.devices.add()
        added.CopyFrom(_state(device.healthy, device.numa))  # there are thousands: a copy costs a fifth of a new one
        added.ID = device.id
    return answer.SerializeToString()


@cache
def _state(healthy: bool, numa: int | None) -> wire.Device:  # noqa: FBT001  (no more than a Device's fields)
    """Returns a device without its id."""
    state = wire.Device(health="Healthy" if healthy else "Unhealthy")
    if numa is not None:
        state.topology.nodes.add(ID=numa)
    return state
