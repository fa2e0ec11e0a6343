"""GPU pods, created as fast as a real API server takes them, on connections that stay open."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPSConnection
from typing import Final, Self

from devcluster.cluster import Cluster
from halfcard import names
from tests.builders import pod
from tests.cluster.manifests import complete

_CORE_LIMIT: Final = {names.TENCENT + names.CORE_LIMIT_SUFFIX: "30"}


class Creating:
    """Makes the pods: each has its own name, and with `unlike` its own template too."""

    def __init__(self, cluster: Cluster, connections: int, *, unlike: bool = False) -> None:
        self._cluster = cluster
        self._count = connections
        self._unlike = unlike
        self._numbers = itertools.count()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._threads = self._open.enter_context(ThreadPoolExecutor(self._count))
        self._connections = [connection(self._cluster) for _ in range(self._count)]
        for each in self._connections:
            self._open.callback(each.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def seconds(self, namespace: str, pods: int) -> float:
        """Measures how long so many creates take; each connection takes the next pod as soon as it is free."""
        bodies = iter([_body(next(self._numbers), unlike=self._unlike) for _ in range(pods)])
        path = f"/api/v1/namespaces/{namespace}/pods"
        began = time.perf_counter()
        list(self._threads.map(lambda connection: self._create(connection, path, bodies), self._connections))
        return time.perf_counter() - began

    def _create(self, connection: HTTPSConnection, path: str, bodies: Iterator[bytes]) -> None:
        for body in bodies:
            create(self._cluster, connection, path, body)


def connection(cluster: Cluster) -> HTTPSConnection:
    """Returns a connection to the API server that stays open."""
    client = cluster.client
    return HTTPSConnection(client.address, client.port, context=cluster.admin.tls(client.authority))


def create(cluster: Cluster, connection: HTTPSConnection, path: str, body: bytes) -> None:
    headers = {"Content-Type": "application/json", **cluster.admin.headers()}
    connection.request("POST", path, body=body, headers=headers)
    answer = connection.getresponse()
    said = answer.read()
    if answer.status != 201:
        raise RuntimeError(f"{path}: {answer.status} {said.decode(errors='replace')}")


def _body(number: int, *, unlike: bool) -> bytes:
    """A pod that needs no repair, so that webhooks that repair nothing can create it too."""
    of = {"pod-template-hash": str(number if unlike else 0)}
    built = pod(f"p{number}").labelled(of).asks(core="30", memory="20").annotated(_CORE_LIMIT)
    return json.dumps(complete(built)).encode()
