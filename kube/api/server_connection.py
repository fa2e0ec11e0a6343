"""A TLS connection for http.client whose server may have another name in its certificate than in its address."""

from __future__ import annotations

import http.client
import socket
import ssl


class ServerConnection(http.client.HTTPSConnection):
    """`server_name` is what the certificate must name."""

    def __init__(self, host: str, port: int, timeout_s: float, *, tls: ssl.SSLContext, server_name: str) -> None:
        super().__init__(host, port, timeout=timeout_s, context=tls)
        self._tls = tls
        self._server_name = server_name

    def connect(self) -> None:
        raw = socket.create_connection((self.host, self.port), self.timeout)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = self._tls.wrap_socket(raw, server_hostname=self._server_name)
