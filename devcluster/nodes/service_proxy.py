"""`python -m devcluster.nodes.service_proxy KUBECONFIG`: stands in for kube-proxy and the cluster's DNS.

It runs on a node, takes the addresses of Services there, and passes each connection on to a ready pod. Nothing of the
kernel's packet filter is needed.
"""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kube.api.access import Access
from kube.api.informer import Informer
from kube.api.kubeconfig import from_kubeconfig
from kube.api.list_watch import Collection, Undecodable, WatchEvent

from ..control_plane.network import must_ip
from ..objects import Object
from .service_routes import Place, addresses, answer, routes

DNS: Final = "10.96.0.10"
READY: Final = "services are reached"
_SERVICES: Final = "/api/v1/services"
_SLICES: Final = "/apis/discovery.k8s.io/v1/endpointslices"
_CHUNK: Final = 65536


class _Followed:
    """The current objects of a collection; `wake` is called after each change."""

    def __init__(self, access: Access, path: str, wake: asyncio.Event) -> None:
        self._items: dict[tuple[str, str], Object] = {}
        self._wake = wake
        collection = Collection(access, path, dict[str, Any])
        self.informer = Informer(collection, listed=self._listed, changed=self._changed, name=path)

    @property
    def items(self) -> list[Object]:
        return [*self._items.values()]

    def _listed(self, found: list[Object | Undecodable]) -> None:
        self._items = {_key(each): each for each in found if not isinstance(each, Undecodable)}
        self._wake.set()

    def _changed(self, changes: list[WatchEvent[Object]]) -> None:
        for change in changes:
            if isinstance(change.object, Undecodable):
                continue
            if change.type == "DELETED":
                self._items.pop(_key(change.object), None)
            else:
                self._items[_key(change.object)] = change.object
        self._wake.set()


def _key(item: Object) -> tuple[str, str]:
    return item["metadata"]["namespace"], item["metadata"]["name"]


class _Names(asyncio.DatagramProtocol):
    def __init__(self, services: _Followed) -> None:
        self._services = services

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        with suppress(IndexError, UnicodeDecodeError, ValueError):
            self._transport.sendto(answer(data, addresses(self._services.items)), addr)


class _Proxy:
    def __init__(self, access: Access) -> None:
        self._wake = asyncio.Event()
        self._services = _Followed(access, _SERVICES, self._wake)
        self._slices = _Followed(access, _SLICES, self._wake)
        self._routes: dict[Place, list[Place]] = {}

    async def run(self) -> None:
        followed = (self._services.informer, self._slices.informer)
        async with asyncio.TaskGroup() as tasks:
            for each in followed:
                tasks.create_task(each.run())
            for each in followed:
                await each.wait_until_ready()
            await self._serve()

    async def _serve(self) -> None:
        _take(DNS)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: _Names(self._services), local_addr=(DNS, 53))
        print(READY, flush=True)
        while True:
            self._wake.clear()
            await self._apply()
            await self._wake.wait()

    async def _apply(self) -> None:
        for place, endpoints in routes(self._services.items, self._slices.items).items():
            is_new = place not in self._routes
            self._routes[place] = endpoints
            if is_new:
                _take(place[0])
                await asyncio.start_server(lambda *link, place=place: self._pass_on(place, *link), *place)

    async def _pass_on(self, place: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, IndexError):
            there = await asyncio.open_connection(*random.choice(self._routes[place]))
            await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        writer.close()


def _take(address: str) -> None:
    must_ip("address", "replace", f"{address}/32", "dev", "lo")


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
    sink.close()


def main() -> None:
    access = from_kubeconfig(Path(sys.argv[1]))
    asyncio.run(_Proxy(access).run())


if __name__ == "__main__":
    main()
