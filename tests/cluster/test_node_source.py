"""NodeSource with a real API server, TLS and a real kubeconfig, and restarts of the API server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from devcluster.cluster import Cluster
from devcluster.control_plane.users import User
from kube.api.kubeconfig import from_kubeconfig
from kube.node_source import NodeSource
from tests.waiting import until

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


def names(source: NodeSource) -> set[str]:
    return {node.name for node in source.view().nodes}


async def test_nodes_are_watched_and_kept_while_the_api_server_restarts() -> None:
    with Cluster() as cluster:
        async with watching(cluster.admin) as source:
            await until(source.ready, within_s=60)
            assert names(source) == set()
            await asyncio.to_thread(cluster.add_node, "n1", CAPACITY)
            await until(lambda: source.view().largest_card_mib == 15104, within_s=60)

            cluster.components["kube-apiserver"].kill()
            await until(source.problems, within_s=60)
            assert source.view().largest_card_mib == 15104
            assert source.ready()
            await asyncio.to_thread(cluster.components["kube-apiserver"].start)
            await until(lambda: not source.problems(), within_s=60)

            await asyncio.to_thread(cluster.add_node, "n2", LARGER)
            await until(lambda: source.view().largest_card_mib == 512 * 256, within_s=60)
            await asyncio.to_thread(cluster.request, "DELETE", "/api/v1/nodes/n2")
            await until(lambda: names(source) == {"n1"}, within_s=60)
            assert source.view().largest_card_mib == 15104


async def test_a_user_without_rights_on_nodes_gets_the_reason_for_not_ready(cluster: Cluster) -> None:
    async with watching(cluster.service_account("default", "no-rights")) as source:
        await until(source.problems, within_s=60)
        assert not source.ready()
        assert "403" in source.problems()[0]
        assert "cannot list resource" in source.problems()[0]
