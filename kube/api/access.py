"""The address of an API server and the credentials, and how a pod finds both in its service account.

Invariant: everything that can be renewed on disk (the token, the CA) is read again for every connection.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from halfcard.exit_codes import UnusableInputError

from .impersonation import Header
from .proxy_choice import Proxy
from .server_connection import ServerConnection, direct_socket, tunnel_socket

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class AccessError(UnusableInputError):
    """The API server cannot be reached with this configuration; the text says why, and what to change."""


@dataclass(frozen=True, slots=True)
class Access:
    """The address and the credentials.

    Attributes:
        prefix: a path that is put before every path, for servers behind a proxy.
        tls: makes the TLS context of one connection; None for plain HTTP.
        token: reads the bearer token for one request; None or empty for none.
        forget_login: makes `token` and `tls` log in again after a request of that time was refused. None where they
            only read; else they may run a program and wait for the user.
        more_headers: those of every request beside the token; a name may occur several times.
        proxy: opens a tunnel to the host; None for a direct connection.
        server_name: what the server's certificate must name; empty for the host.
        namespace: the one that commands are about if they name none; empty for none.
    """

    host: str
    port: int
    prefix: str = ""
    tls: Callable[[], ssl.SSLContext] | None = None
    token: Callable[[], str] | None = None
    forget_login: Callable[[float], None] | None = None
    more_headers: tuple[Header, ...] = ()
    proxy: Proxy | None = None
    server_name: str = ""
    namespace: str = ""

    def connect(self, timeout_s: float) -> http.client.HTTPConnection:
        if self.tls is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        return ServerConnection(
            self.host,
            self.port,
            timeout_s,
            tls=self.tls(),
            server_name=self.certified_name,
            open_socket=self.open_socket,
        )

    def open_socket(self, timeout_s: float) -> socket.socket:
        if self.proxy is None:
            return direct_socket(self.host, self.port, timeout_s)
        return tunnel_socket(self.proxy, self.host, self.port, timeout_s)

    @property
    def certified_name(self) -> str:
        return self.server_name or self.host

    def headers(self) -> list[Header]:
        token = self.token() if self.token else ""
        credentials = [("Authorization", f"Bearer {token}")] if token else []
        return [("Accept", "application/json"), ("User-Agent", "halfcard"), *credentials, *self.more_headers]

    def get(self, connection: http.client.HTTPConnection, path: str, headers: Iterable[Header]) -> None:
        """Sends a request; http.client's own method cannot repeat a header."""
        connection.putrequest("GET", f"{self.prefix}{path}")
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()

    def logs_in_again(self, status: int, asked_at: float) -> bool:
        """Returns whether a request, sent at that monotonic time, is to be repeated with a new login."""
        if status != http.client.UNAUTHORIZED or self.forget_login is None:
            return False
        self.forget_login(asked_at)
        return True


def from_service_account(folder: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ) -> Access:
    """Reads the access of a pod's service account.

    Raises:
        AccessError: the process does not run in a pod, or the pod has no service account.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    authorities, token = folder / "ca.crt", folder / "token"
    if not host or not port:
        raise AccessError(
            "KUBERNETES_SERVICE_HOST is not set: the process does not run in a pod; name a kubeconfig instead"
        )
    if not token.exists():
        raise AccessError(f"{token} does not exist; set automountServiceAccountToken: true on the pod")
    return Access(
        host, int(port), tls=lambda: tls_context(read_text(authorities)), token=lambda: read_text(token).strip()
    )


def read_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(f"{path}: cannot be read: {error}; check the path and its permissions") from None


def tls_context(authorities: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=authorities)
    except ssl.SSLError as error:
        raise AccessError(f"the certificate authority is no PEM certificate: {error}; copy it again") from None


def load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Loads a client certificate; OpenSSL reads it from files only, so they are private and deleted at once."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
        pair.write(f"{certificate}\n{key}\n")
        pair.flush()
        try:
            context.load_cert_chain(pair.name)
        except ssl.SSLError as error:
            raise AccessError(f"the client certificate and its key are no pair: {error}; copy them again") from None
