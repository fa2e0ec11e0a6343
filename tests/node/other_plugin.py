"""A minimal device plugin of another system: it advertises given ids, and passes cards in an environment variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import grpc

from devcluster.nodes.node import RealNode
from devcluster.startable import Startable
from deviceplugin.kubelet import device_plugin_pb2 as wire
from halfcard import names

CardsForIds = Callable[[Sequence[str]], str]
"""Returns the cards for these ids, in the spelling that NVIDIA's runtime reads."""


class OtherPlugin(Startable):
    """Registers at kubelet when it starts."""

    def __init__(self, node: RealNode, resource: str, *ids: str, cards_for: CardsForIds = ",".join) -> None:
        self._folder = node.device_plugins
        self._socket = f"other-{resource.replace('/', '-')}.sock"
        self._gives = cards_for
        self._resource = resource
        self._ids = ids
        self._ended = Event()
        super().__init__()

    def _start(self) -> None:
        server = grpc.server(ThreadPoolExecutor(max_workers=4))
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", self._calls()),))
        server.add_insecure_port(f"unix:{self._folder / self._socket}")
        server.start()
        self._stack.callback(lambda: server.stop(None).wait())
        self._stack.callback(self._ended.set)
        self._register()

    def _calls(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        def as_bytes(message: Any) -> bytes:
            serialized: bytes = message.SerializeToString()
            return serialized

        return {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(
                lambda _request, _context: wire.DevicePluginOptions(), wire.Empty.FromString, as_bytes
            ),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                lambda _request, _context: self._list(), wire.Empty.FromString, as_bytes
            ),
            "Allocate": grpc.unary_unary_rpc_method_handler(
                lambda request, _context: self._allocated(request), wire.AllocateRequest.FromString, as_bytes
            ),
        }

    def _list(self) -> Iterator[wire.ListAndWatchResponse]:
        yield wire.ListAndWatchResponse(devices=[wire.Device(ID=each, health="Healthy") for each in self._ids])
        self._ended.wait()

    def _allocated(self, request: wire.AllocateRequest) -> wire.AllocateResponse:
        cards = [self._gives(each.devices_ids) for each in request.container_requests]
        answers = [wire.ContainerAllocateResponse(envs={names.VISIBLE_DEVICES: each}) for each in cards]
        return wire.AllocateResponse(container_responses=answers)

    def _register(self) -> None:
        request = wire.RegisterRequest(version="v1beta1", endpoint=self._socket, resource_name=self._resource)
        with grpc.insecure_channel(f"unix:{self._folder / 'kubelet.sock'}") as channel:
            call = channel.unary_unary(
                "/v1beta1.Registration/Register",
                request_serializer=wire.RegisterRequest.SerializeToString,
                response_deserializer=wire.Empty.FromString,
            )
            call(request, timeout=20)
