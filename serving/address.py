"""Listen addresses: 127.0.0.1:8443, [::1]:8443, or :8443 for every interface."""

from __future__ import annotations

import argparse
import errno
import socket
from dataclasses import dataclass

from halfcard import names
from serving.errors import CannotServeError

_BACKLOG = 1024
_HIGHEST_PORT = 65535
_NO_IPV6 = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parses an address; raises ValueError, with the valid forms, for any other text."""
    host, colon, port = text.strip().rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    example = names.ADMISSION_PORT
    if not colon or not _is_port(port) or (":" in host and not bracketed):
        raise ValueError(
            f'listen address: got "{text}"; use HOST:PORT with a port from 0 (any free one) to 65535: '
            f"127.0.0.1:{example}, [::1]:{example}, or :{example} for every interface"
        )
    return Address(host[1:-1] if bracketed else host, int(port))


def argument(text: str) -> Address:
    """Parses an argument of argparse."""
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= _HIGHEST_PORT


def bind(address: Address, *, listener: str) -> socket.socket:
    """Returns a listening, non-blocking socket; port 0 chooses a free port."""
    try:
        bound = _bind_every_interface(address.port) if not address.host else _bind_host(address)
    except OSError as error:
        raise CannotServeError(
            f"listener {listener}: cannot listen on {address}: {error.strerror or error}; "
            f"use an address of this machine and a port that no other process uses"
        ) from error
    bound.settimeout(0)
    return bound


def _bind_host(address: Address) -> socket.socket:
    family, _, _, _, where = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)[0]
    return socket.create_server((str(where[0]), address.port), family=family, backlog=_BACKLOG)


def _bind_every_interface(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            where = ("::", port)
            return socket.create_server(where, family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
    return socket.create_server(("0.0.0.0", port), backlog=_BACKLOG)  # noqa: S104 - ":PORT" requests it


def bound_address(bound: socket.socket) -> Address:
    host, port = bound.getsockname()[:2]
    return Address(host, port)
