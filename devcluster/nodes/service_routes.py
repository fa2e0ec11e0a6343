"""Where the addresses and names of Services lead: what kube-proxy and the cluster's DNS know, as pure functions."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ..objects import Object

Place = tuple[str, int]

_DOMAIN: Final = "svc.cluster.local"
_HEADER: Final = struct.Struct("!HHHHHH")
_IS_ANSWER: Final = 0x8180
_NO_SUCH_NAME: Final = 3
_ADDRESS: Final = 1
_ANSWER: Final = struct.Struct("!HHHIH4s")
_THE_NAME_ASKED: Final = 0xC00C
_INTERNET: Final = 1
_TTL_S: Final = 5


def routes(services: Iterable[Object], slices: Iterable[Object]) -> Mapping[Place, list[Place]]:
    """Returns the ready endpoints of each port of each Service that has pods."""
    found, known = dict[Place, list[Place]](), [*slices]
    for service in filter(_has_pods, services):
        own = [each for each in known if _belongs(each, service)]
        for port in service["spec"]["ports"]:
            found[service["spec"]["clusterIP"], port["port"]] = [*_ready(own, port.get("name"))]
    return found


def addresses(services: Iterable[Object]) -> Mapping[str, str]:
    """Returns the address of each Service by its full name."""
    return {f"{_title(each)}.{_DOMAIN}": each["spec"]["clusterIP"] for each in services if _has_address(each)}


def _title(service: Object) -> str:
    return f"{service['metadata']['name']}.{service['metadata']['namespace']}"


def _has_address(service: Object) -> bool:
    return bool(service["spec"].get("clusterIP", "None") != "None")


def _has_pods(service: Object) -> bool:
    """Returns False for `kubernetes` too, whose address the API server has itself."""
    return _has_address(service) and bool(service["spec"].get("selector"))


def _belongs(endpoints: Object, service: Object) -> bool:
    metadata = endpoints["metadata"]
    named = f"{(metadata.get('labels') or {}).get('kubernetes.io/service-name')}.{metadata['namespace']}"
    return named == _title(service)


def _ready(slices: Iterable[Object], port_name: str | None) -> Iterator[Place]:
    for each in slices:
        for port in each.get("ports") or ():
            if (port.get("name") or None) == (port_name or None):
                for endpoint in each.get("endpoints") or ():
                    if (endpoint.get("conditions") or {}).get("ready") is not False:
                        yield endpoint["addresses"][0], port["port"]


# --- names -----------------------------------------------------------------------------------------------------------


def answer(query: bytes, known: Mapping[str, str]) -> bytes:
    """Answers one question of DNS: the address of a known name, or that there is no such name."""
    number = _HEADER.unpack_from(query)[0]
    labels, end = _labels(query, _HEADER.size)
    kind = int.from_bytes(query[end : end + 2], "big")
    question, address = query[_HEADER.size : end + 4], known.get(".".join(labels).lower())
    if address is None or kind != _ADDRESS:
        flags = _IS_ANSWER | (_NO_SUCH_NAME if address is None else 0)
        return _HEADER.pack(number, flags, 1, 0, 0, 0) + question
    packed = ipaddress.IPv4Address(address).packed
    record = _ANSWER.pack(_THE_NAME_ASKED, _ADDRESS, _INTERNET, _TTL_S, len(packed), packed)
    return _HEADER.pack(number, _IS_ANSWER, 1, 1, 0, 0) + question + record


def _labels(query: bytes, start: int) -> tuple[list[str], int]:
    """Returns the labels of the name, and where it ends."""
    found = list[str]()
    while length := query[start]:
        found.append(query[start + 1 : start + 1 + length].decode("ascii"))
        start += 1 + length
    return found, start + 1
