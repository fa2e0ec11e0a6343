"""Which waiting pods stay outside of the queue."""

from __future__ import annotations

import asyncio

from halfcard.capacity import CapacityRules
from halfcard.placing.demand import Demand
from halfcard.quota.budgets import deleted_budget
from kube.api.access import Access
from kube.node_source import NODES
from quota.charged_pods import ChargedPod
from quota.gates.impossible_pods import NO_NODE, ImpossiblePods
from quota.node_locations import NodeLocations
from tests.builders import resource_slice
from tests.halfcard.placing.examples import demand
from tests.kube.node_server import SLICES, Object, driver_servers, serving
from tests.waiting import until

BUDGET = deleted_budget("gpuquota.team.gpu")._replace(hard={"cores": 100}, label="user")
POD = ChargedPod("team", "p", {}, {"cores": 150})


def why(reach: int, *, fits_a_node: bool = True) -> str:
    return ImpossiblePods(lambda _: {"cores": reach}, lambda _: fits_a_node).why(POD, [BUDGET])


def test_a_pod_larger_than_its_quota_can_ever_be_stays_outside() -> None:
    assert why(150) == ""
    assert "exceeded quota: team/gpu, requested: cores=150, used: cores=0, limited: cores=149" in why(149)


def test_a_pod_that_no_node_could_take_stays_outside() -> None:
    assert why(150, fits_a_node=False) == NO_NODE


def node(name: str, cards: int) -> Object:
    return {"metadata": {"name": name}, "status": {"capacity": {"nvidia.com/gpu": f"{cards}"}}}


async def test_a_pod_could_be_taken_as_soon_as_a_large_node_exists_and_no_longer_than_that() -> None:
    changes: list[None] = []
    with serving() as server:
        nodes = NodeLocations(Access("127.0.0.1", server.port), CapacityRules(), lambda: changes.append(None))
        large: Demand = demand(gpu=16)
        assert nodes.could_take(large), "while nodes are unknown"
        server.put(node("small", 8))
        following = asyncio.create_task(nodes.informer.run())
        await until(lambda: not nodes.could_take(large))
        assert nodes.could_take(demand(gpu=8))
        server.put(node("large", 16))
        await until(lambda: nodes.could_take(large))
        server.delete("large")
        await until(lambda: not nodes.could_take(large))
        following.cancel()
        await asyncio.wait([following])


async def test_whole_cards_could_be_taken_where_a_driver_may_have_them() -> None:
    drivers = driver_servers()
    with serving(NODES, drivers) as server:
        server.put(node("small", 8))
        nodes = NodeLocations(Access("127.0.0.1", server.port), CapacityRules(), lambda: None)
        jobs = [nodes.informer.run, *[each.run for each in nodes.driver_watches.informers]]
        following = [asyncio.create_task(job()) for job in jobs]
        await until(lambda: not nodes.could_take(demand(gpu=16)))
        drivers[SLICES].put(resource_slice("dra1"))
        await until(lambda: nodes.could_take(demand(gpu=16)))
        assert not nodes.could_take(demand(core=1600))
        for each in following:
            each.cancel()
        await asyncio.wait(following)
