"""An HTTP proxy on this machine that opens tunnels."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from .listening import listening


@dataclass
class TunnellingProxy:
    """`tunnels` are those that clients asked for, with their Proxy-Authorization."""

    port: int = 0
    tunnels: list[tuple[str, str | None]] = field(default_factory=list)


@contextmanager
def tunnelling_proxy(*, refuses: bool = False) -> Iterator[TunnellingProxy]:
    proxy = TunnellingProxy()

    class Handler(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            proxy.tunnels.append((self.path, self.headers["Proxy-Authorization"]))
            if refuses:
                return self.send_error(407)
            host, _, port = self.path.rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                self.send_response(200)
                self.end_headers()
                _relay(self.connection, server)
            return None

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    with listening(Handler) as proxy.port:
        yield proxy


def _relay(one: socket.socket, other: socket.socket) -> None:
    """Copies in both directions until one end closes."""
    while True:
        for source in select.select([one, other], [], [])[0]:
            data = source.recv(65536)
            if not data:
                return
            (other if source is one else one).sendall(data)
