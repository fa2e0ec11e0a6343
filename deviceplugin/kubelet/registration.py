"""Registers a plugin: kubelet takes the name of its socket, and calls back before it answers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import grpc.aio

from . import device_plugin_pb2 as wire
from .channel import KubeletError, open_channel, status_text

VERSION: Final = "v1beta1"
OPTIONS: Final = wire.DevicePluginOptions(pre_start_required=True)

_METHOD: Final = "/v1beta1.Registration/Register"
_PATIENCE_S: Final = 15.0
"""kubelet itself stops calling back after 10."""


async def register(kubelet_socket: Path, endpoint: str, resource: str) -> None:
    """Registers a plugin that serves already; `endpoint` is the name of its socket in kubelet's folder.

    Raises:
        KubeletError: kubelet is not there, or refuses.
    """
    request = wire.RegisterRequest(version=VERSION, endpoint=endpoint, resource_name=resource, options=OPTIONS)
    async with open_channel(kubelet_socket) as channel:
        call = channel.unary_unary(
            _METHOD,
            request_serializer=wire.RegisterRequest.SerializeToString,
            response_deserializer=wire.Empty.FromString,
        )
        try:
            await call(request, timeout=_PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            raise KubeletError(
                f"kubelet did not register {resource} by its socket {kubelet_socket} ({status_text(error)}): pods that "
                "ask for it do not start on this node; the agent tries again"
            ) from error
