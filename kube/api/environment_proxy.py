"""Whether the environment sends the calls to a server through a proxy, as HTTPS_PROXY and NO_PROXY say."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final

_EVERY_HOST: Final = "*"


def environment_proxy(scheme: str, host: str, environ: Mapping[str, str]) -> str | None:
    """Returns the variable that names a proxy for the host, as kubectl reads it; None for a direct call."""
    named = next((name for name in (f"{scheme.upper()}_PROXY", f"{scheme}_proxy") if environ.get(name)), None)
    if named is None or _is_loopback(host):
        return None
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    return None if any(_covers(each.strip(), host) for each in exceptions.split(",")) else named


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _covers(exception: str, host: str) -> bool:
    """Returns whether an entry of NO_PROXY is the host, a domain above it, or a network that contains it."""
    if not exception:
        return False
    address = _address(host)
    if address is not None and "/" in exception:
        return _is_in(address, exception)
    name = exception.partition(":")[0].lstrip(".").lower() if address is None else exception
    return exception == _EVERY_HOST or host.lower() == name or (address is None and host.lower().endswith(f".{name}"))


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
