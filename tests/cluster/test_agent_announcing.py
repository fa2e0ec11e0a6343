"""What an agent writes about its node, on a real API server: patches of two kinds, and others who write there too."""

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
from kube.api.access import from_kubeconfig
from kube.api.calls import ApiCalls
from serving.log import Log
from tests.deviceplugin.nodes import GOOD, MIB, SICK, said

SECONDS: Final = 30


async def seen(cluster: Cluster, name: str, announcing: NodeWriter, wanted: Callable[[dict[str, Any]], bool]) -> None:
    """The node as it is read again and again, until it is as wanted."""
    async with asyncio.timeout(SECONDS):
        while True:
            there = await asyncio.to_thread(lambda: cluster.request("GET", f"/api/v1/nodes/{name}").must())
            if wanted(there):
                return
            announcing.observe(there)
            await asyncio.sleep(0.2)


def total(there: dict[str, Any]) -> tuple[str | None, str | None]:
    return there["status"]["capacity"].get(MIB), there["status"]["allocatable"].get(MIB)


def condition(there: dict[str, Any]) -> str:
    conditions = {each["type"]: each["status"] for each in there["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    return str(conditions.get(names.CARDS_CONDITION))


async def test_the_agent_writes_to_its_node_and_kubelets_fields_stay(cluster: Cluster) -> None:
    cluster.add_node("announced", {"cpu": "8", "memory": "16Gi", "pods": "110"}, {names.NVIDIA_LABEL_COUNT: "7"})
    calls = ApiCalls(from_kubeconfig(cluster.admin.kubeconfig))
    announcing = NodeWriter(calls, "announced", Log(), lambda: datetime.now(UTC))

    async def until(wanted: Callable[[dict[str, Any]], bool]) -> None:
        await seen(cluster, "announced", announcing, wanted)

    running = asyncio.create_task(announcing.run())
    announcing.announce(said(GOOD, replace(SICK, why_not=""), total=30218))
    await until(lambda there: total(there) == ("30218", "30218") and condition(there) == "True")
    announcing.announce(said(GOOD, SICK, total=15000))
    await until(lambda there: total(there) == ("15k", "15k") and condition(there) == "False")
    wiped = {"status": {"capacity": {MIB: "0"}, "allocatable": {MIB: "0"}}}
    cluster.client.merge(cluster.admin, "/api/v1/nodes/announced/status", wiped)
    await until(lambda there: total(there) == ("15k", "15k"))
    announcing.announce(said(GOOD, total=None))
    await until(lambda there: total(there) == (None, None) and condition(there) == "True")
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    calls.close()

    described = cluster.client.kubectl(cluster.admin, "describe", "node", "announced").stdout
    assert f"{names.NVIDIA_LABEL_COUNT}=7" in described
    assert f"{names.NVIDIA_LABEL_MEMORY}=15109" in described
    assert "CardFailed" in described and "card 1 (GPU-1) gets nothing new: Xid 79" in described
