"""The nodes of a real API server, by TLS and a real kubeconfig, through its restarts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from devcluster.cluster import Cluster
from devcluster.control_plane.users import User
from kube.api.access import from_kubeconfig
from kube.node_source import NodeSource

CAPACITY = {"tencent.com/vcuda-core": "400", "tencent.com/vcuda-memory": "236", "cpu": "8", "pods": "110"}
LARGER = {"tencent.com/vcuda-core": "100", "tencent.com/vcuda-memory": "512", "cpu": "8", "pods": "110"}


@contextlib.asynccontextmanager
async def watching(user: User) -> AsyncIterator[NodeSource]:
    source = NodeSource(from_kubeconfig(user.kubeconfig))
    watch = asyncio.create_task(source.watch())
    try:
        yield source
        assert not watch.done()
    finally:
        watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watch


async def until(condition: Callable[[], bool], source: NodeSource) -> None:
    try:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110  (what is waited for is seen from outside only)
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"still {source.view()} with {source.problems()}") from None


def names(source: NodeSource) -> set[str]:
    return {node.name for node in source.view().nodes}


def test_nodes_are_followed_and_an_api_server_that_restarts_empties_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        async with watching(cluster.admin) as source:
            await until(source.ready, source)
            assert names(source) == set()
            await asyncio.to_thread(cluster.add_node, "n1", CAPACITY)
            await until(lambda: source.view().largest_card_mib == 15104, source)

            cluster.components["kube-apiserver"].kill()
            await until(lambda: bool(source.problems()), source)
            assert source.view().largest_card_mib == 15104
            assert source.ready()
            await asyncio.to_thread(cluster.components["kube-apiserver"].start)
            await until(lambda: not source.problems(), source)

            await asyncio.to_thread(cluster.add_node, "n2", LARGER)
            await until(lambda: source.view().largest_card_mib == 512 * 256, source)
            await asyncio.to_thread(cluster.request, "DELETE", "/api/v1/nodes/n2")
            await until(lambda: names(source) == {"n1"}, source)
            assert source.view().largest_card_mib == 15104

    with Cluster() as cluster:
        asyncio.run(story(cluster))


def test_who_may_not_list_nodes_is_told_so_and_is_not_ready(cluster: Cluster) -> None:
    async def story() -> None:
        async with watching(cluster.service_account("default", "stranger")) as source:
            await until(lambda: bool(source.problems()), source)
            assert not source.ready()
            assert "403" in source.problems()[0]
            assert "cannot list resource" in source.problems()[0]

    asyncio.run(story())
