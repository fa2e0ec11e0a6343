"""The agent's patches of its node and node status on a real API server, where kubelet and others write too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from devcluster.cluster import Cluster
from deviceplugin.advertise.node_writer import NodeWriter
from halfcard import names
from kube.api.calls import ApiCalls
from kube.api.kubeconfig import from_kubeconfig
from serving.log import Log
from tests.deviceplugin.nodes import GOOD, MIB, SICK, announcement_of

SECONDS: Final = 30


async def wait_for_node(
    cluster: Cluster, name: str, writer: NodeWriter, is_expected: Callable[[dict[str, Any]], bool]
) -> None:
    """Reads the node repeatedly, and passes it to the writer, until it is as expected."""
    async with asyncio.timeout(SECONDS):
        while True:
            node = await asyncio.to_thread(lambda: cluster.request("GET", f"/api/v1/nodes/{name}").must())
            if is_expected(node):
                return
            writer.observe(node)
            await asyncio.sleep(0.2)


def total(node: dict[str, Any]) -> tuple[str | None, str | None]:
    return node["status"]["capacity"].get(MIB), node["status"]["allocatable"].get(MIB)


def condition(node: dict[str, Any]) -> str:
    conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    return str(conditions.get(names.CARDS_CONDITION))


async def test_the_agent_writes_to_its_node_and_kubelets_fields_stay(cluster: Cluster) -> None:
    cluster.add_node("announced", {"cpu": "8", "memory": "16Gi", "pods": "110"}, {names.NVIDIA_LABEL_COUNT: "7"})
    calls = ApiCalls(from_kubeconfig(cluster.admin.kubeconfig))
    writer = NodeWriter(calls, "announced", Log(), lambda: datetime.now(UTC))

    async def wait_for(is_expected: Callable[[dict[str, Any]], bool]) -> None:
        await wait_for_node(cluster, "announced", writer, is_expected)

    running = asyncio.create_task(writer.run())
    writer.announce(announcement_of(GOOD, replace(SICK, why_not=""), total=30218))
    await wait_for(lambda node: total(node) == ("30218", "30218") and condition(node) == "True")
    writer.announce(announcement_of(GOOD, SICK, total=15000))
    await wait_for(lambda node: total(node) == ("15k", "15k") and condition(node) == "False")
    wiped = {"status": {"capacity": {MIB: "0"}, "allocatable": {MIB: "0"}}}
    cluster.client.merge(cluster.admin, "/api/v1/nodes/announced/status", wiped)
    await wait_for(lambda node: total(node) == ("15k", "15k"))
    writer.announce(announcement_of(GOOD, total=None))
    await wait_for(lambda node: total(node) == (None, None) and condition(node) == "True")
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    calls.close()

    described = cluster.client.kubectl(cluster.admin, "describe", "node", "announced").stdout
    assert f"{names.NVIDIA_LABEL_COUNT}=7" in described
    assert f"{names.NVIDIA_LABEL_MEMORY}=15109" in described
    assert "CardFailed" in described and "card 1 (GPU-1) gets nothing new: Xid 79" in described
