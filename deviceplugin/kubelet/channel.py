"""Opens channels to kubelet's sockets, and formats its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import grpc.aio

from halfcard.problems import printable

_MOST_BYTES: Final = 64 * 2**20
_OPTIONS: Final = (
    ("grpc.use_local_subchannel_pool", 1),  # a new channel does not share the back-off of an old one
    ("grpc.max_receive_message_length", _MOST_BYTES),  # a list may have thousands of ids
    ("grpc.initial_reconnect_backoff_ms", 50),  # kubelet is back soon, and containers wait for it
    ("grpc.min_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class KubeletError(Exception):
    """kubelet does not answer, or refuses; the text says what, why and what to do."""


def open_channel(socket: Path) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"unix:{socket}", options=_OPTIONS)


def status_text(error: grpc.aio.AioRpcError) -> str:
    """Formats the answer in one line."""
    return printable(f"{error.code().name}: {error.details() or 'without a word'}")
