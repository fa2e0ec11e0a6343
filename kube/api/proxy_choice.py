"""Which proxy leads to a server, by HTTPS_PROXY and NO_PROXY as kubectl reads them."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

_EVERY_HOST: Final = "*"
_DEFAULT_PORT: Final = 80


class Proxy(NamedTuple):
    """An HTTP proxy that opens tunnels; `authorization` is the header's value, empty for none."""

    host: str
    port: int
    authorization: str = ""


def read_proxy(url: str) -> Proxy:
    """Raises ValueError, whose text has no password, for a proxy of another kind."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http":
        raise ValueError(f"got a proxy with {parts.scheme}://, and Halfcard uses only proxies with http://")
    if not parts.hostname:
        raise ValueError("got a proxy without a host; it is a URL such as http://HOST:3128")
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    basic = "" if pair == ":" else f"Basic {base64.b64encode(pair.encode()).decode()}"
    return Proxy(parts.hostname, parts.port or _DEFAULT_PORT, basic)


def environment_proxy(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Returns the variable that names a proxy for the host, and its value; None for a direct call."""
    found = ((name, environ.get(name, "")) for name in (f"{scheme.upper()}_PROXY", f"{scheme}_proxy"))
    named = next((pair for pair in found if pair[1]), None)
    if named is None or _is_loopback(host):
        return None
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    return None if any(_covers(each.strip().lower(), host.lower(), port) for each in exceptions.split(",")) else named


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _covers(exception: str, host: str, port: int) -> bool:
    """Returns whether an entry of NO_PROXY is the host, a domain above it, or a network that contains it."""
    if exception == _EVERY_HOST:
        return True
    address = _address(host)
    if "/" in exception:
        return address is not None and _is_in(address, exception)
    name, only_port = _split(exception)
    if not name or only_port not in ("", str(port)):
        return False
    if address is not None:
        return _address(name) == address
    domain = name.removeprefix("*")
    return host.endswith(domain) if domain.startswith(".") else host == domain or host.endswith(f".{domain}")


def _split(exception: str) -> tuple[str, str]:
    """Splits HOST:PORT and [IPV6]:PORT; an address of IPv6 alone has no port."""
    if exception.startswith("["):
        name, _, port = exception[1:].partition("]")
        return name, port.removeprefix(":")
    name, _, port = exception.partition(":")
    return (exception, "") if ":" in port else (name, port)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_in(address: ipaddress.IPv4Address | ipaddress.IPv6Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
