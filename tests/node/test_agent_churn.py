"""Pods come and go on a real node while its programs are killed: each gets its card, none is lost, nothing is left.

HALFCARD_NODE_PODS and HALFCARD_NODE_SEED choose another load than the usual one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from devcluster.errors import NotReadyError
from tests.nvml.stand_in import stand_in_cards

from .gpu_churn import CARD_MIB, OFFERED, Crowd, has_failed, is_running
from .gpu_cluster import GpuCluster
from .gpu_faults import (
    failed_admissions,
    in_allocate,
    kill_agent,
    kill_agent_in_prestart,
    kill_container,
    leftovers,
    restart_agent,
    restart_containerd,
    restart_kubelet,
    wait_restarted,
)
from .told import differences

PODS: Final = int(os.environ.get("HALFCARD_NODE_PODS", "30"))
SEED: Final = int(os.environ.get("HALFCARD_NODE_SEED", "1"))
CARDS: Final = min(max(5, PODS // 8), 16)  # of 16 all ids together are just fewer than a node may have
TOTALS_WITHIN_S: Final = 60.0

say: Final = print

pytestmark = pytest.mark.timeout(300 + 12 * PODS)


@pytest.fixture
def crowd(gpus: GpuCluster, space: str) -> Iterator[Crowd]:
    """On a node of many cards, offered in many ways."""
    with gpus.equipped(stand_in_cards(CARDS, memory_mib=CARD_MIB), {"node_resources": OFFERED}):
        gpus.agent.wait_offered(OFFERED[0], 100 * CARDS)
        gpus.cluster.wait_until(lambda: all(totals(gpus).values()), what="all resources to be offered")
        yield Crowd(gpus, space, SEED)


def kill_agent_in_allocate(gpus: GpuCluster) -> None:
    """Kubelet has asked, and is never answered. Where no pod comes any more it is killed just so."""
    gpus.agent.program.pause()
    try:
        gpus.cluster.wait_until(lambda: in_allocate(gpus), what="kubelet to ask the agent", seconds=5)
    finally:
        kill_agent(gpus)


FAULTS: Final[tuple[Callable[[GpuCluster], None], ...]] = (
    restart_kubelet,
    kill_agent_in_prestart,
    restart_agent,
    restart_containerd,
    kill_agent_in_allocate,
    kill_agent,
)


def test_pods_come_and_go_while_kubelet_agent_and_containerd_are_killed(crowd: Crowd, gpus: GpuCluster) -> None:
    empty = totals(gpus)
    crowd.come(PODS)
    assert crowd.wrong(crowd.settled()) == []
    for fault in FAULTS:
        crowd.replace_failed()
        before = crowd.running()
        crowd.go(PODS // 3)
        crowd.come(PODS // 3)
        hit = happens(fault, gpus)
        seen = crowd.settled()
        say(f"{fault.__name__}: {hit}; {state(crowd)}")
        assert crowd.wrong(seen, before) == []
    containers_that_crash_come_back_with_their_card(crowd, gpus)
    assert len(crowd.running()) >= PODS // 3
    gpus.agent.restart()
    failed = sum(map(has_failed, crowd.pods()))
    gpus.cluster.wait_until(lambda: failed_admissions(gpus) == failed, what=f"{failed} failed pods to be counted")
    nothing_is_left(crowd, gpus, empty)


def happens(fault: Callable[[GpuCluster], None], gpus: GpuCluster) -> str:
    try:
        fault(gpus)
    except NotReadyError as missed:
        return f"missed its moment: {missed}".splitlines()[0]
    return "at its moment"


def state(crowd: Crowd) -> str:
    pods = crowd.pods()
    return f"{len(pods)} pods, {sum(map(is_running, pods))} running, {sum(map(has_failed, pods))} failed"


def containers_that_crash_come_back_with_their_card(crowd: Crowd, gpus: GpuCluster) -> None:
    some = crowd.random.sample(running := crowd.running(), min(5, len(running)))
    for each in some:
        kill_container(gpus.node, each, "containers-0")
    back = [wait_restarted(gpus, each, "containers-0") for each in some]
    assert [wrong for each in back for wrong in differences(gpus.cluster, each)] == []


def totals(gpus: GpuCluster) -> dict[str, int]:
    return {resource: gpus.agent.offered(resource) for resource in OFFERED}


def nothing_is_left(crowd: Crowd, gpus: GpuCluster, empty: dict[str, int]) -> None:
    crowd.go_all()
    gpus.cluster.wait_until(
        lambda: totals(gpus) == empty, what=f"the totals of an empty node, {empty}", seconds=TOTALS_WITHIN_S
    )
    gpus.cluster.wait_until(lambda: not leftovers(gpus.node), what="all slots to be cleared", seconds=TOTALS_WITHIN_S)
