"""The names that a certificate is valid for: DNS names (a leading `*.` is allowed) and IP addresses, in one spelling
each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from halfcard.exit_codes import UnreadableError
from halfcard.names import ADMISSION_SERVICE, NAMESPACE

ServerName = str | IPv4Address | IPv6Address
ServerNames = frozenset[ServerName]

_LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_DNS: Final = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_DNS_LENGTH: Final = 253
_ALL_DIGITS: Final = re.compile(r"[0-9.]+")


class InvalidServerName(UnreadableError, ValueError):
    """The text is neither a DNS name nor an IP address."""


def server_names(texts: Iterable[str]) -> ServerNames:
    names = frozenset(_server_name(text) for text in texts)
    if not names:
        raise InvalidServerName("no server name: a certificate needs one; name a service or an address")
    return names


def listed(names: ServerNames) -> str:
    return ", ".join(sorted(str(name) for name in names)) or "none"


def _server_name(text: str) -> ServerName:
    try:
        return ip_address(text)
    except ValueError:
        lower = text.lower()
    # 10.0.0.256 fits the grammar of DNS names, but is meant as an address.
    if len(lower) <= _DNS_LENGTH and _DNS.fullmatch(lower) and not _ALL_DIGITS.fullmatch(lower):
        return lower
    raise InvalidServerName(
        f"server name {text!a:.80}: neither an IP address nor a DNS name of letters, digits and hyphens; "
        f"write it like {ADMISSION_SERVICE}.{NAMESPACE}.svc or 127.0.0.1"
    )
