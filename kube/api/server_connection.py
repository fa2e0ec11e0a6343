"""Connections to a server: directly or through a proxy, with the name that its certificate must have."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable

from .proxy_choice import Proxy


class ServerConnection(http.client.HTTPSConnection):
    """A TLS connection for http.client over a socket from `open_socket`, which takes the time limit in seconds."""

    def __init__(
        self,
        host: str,
        port: int,
        timeout_s: float,
        *,
        tls: ssl.SSLContext,
        server_name: str,
        open_socket: Callable[[float], socket.socket],
    ) -> None:
        super().__init__(host, port, timeout=timeout_s, context=tls)
        self._tls, self._server_name, self._open_socket, self._timeout_s = tls, server_name, open_socket, timeout_s

    def connect(self) -> None:
        self.sock = self._tls.wrap_socket(self._open_socket(self._timeout_s), server_hostname=self._server_name)


def direct_socket(host: str, port: int, timeout_s: float) -> socket.socket:
    opened = socket.create_connection((host, port), timeout_s)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def tunnel_socket(proxy: Proxy, host: str, port: int, timeout_s: float) -> socket.socket:
    """Asks the proxy for a tunnel; http.client reads no byte of what follows.

    Raises:
        OSError: the proxy cannot be reached or refuses.
    """
    connection = http.client.HTTPConnection(proxy.host, proxy.port, timeout=timeout_s)
    bracketed = f"[{host}]" if ":" in host else host
    headers = {"Host": f"{bracketed}:{port}"}
    if proxy.authorization:
        headers["Proxy-Authorization"] = proxy.authorization
    connection.set_tunnel(bracketed, port, headers)
    try:
        connection.connect()
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise OSError(f"the proxy {proxy.host}:{proxy.port} does not lead there: {error}") from None
    opened: socket.socket = connection.sock
    return opened
