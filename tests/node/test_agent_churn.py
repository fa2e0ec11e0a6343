"""Pods are created and deleted on a real node while its programs are killed: each gets its card, none is lost.

HALFCARD_NODE_PODS and HALFCARD_NODE_SEED change the number of pods and the seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from devcluster.errors import NotReadyError
from tests.nvml.stand_in import stand_in_cards

from .container_report import wrong_cards
from .gpu_churn import CARD_MIB, OFFERED, PodChurn, has_failed, is_running
from .gpu_cluster import GpuCluster
from .gpu_faults import (
    failed_admissions,
    is_call_pending,
    kill_agent,
    kill_agent_in_prestart,
    kill_container,
    leftovers,
    restart_agent,
    restart_containerd,
    restart_kubelet,
    wait_restarted,
)

PODS: Final = int(os.environ.get("HALFCARD_NODE_PODS", "30"))
SEED: Final = int(os.environ.get("HALFCARD_NODE_SEED", "1"))
CARDS: Final = min(max(5, PODS // 8), 16)  # 16 cards have nearly as many device ids as a node may have
TOTALS_WITHIN_S: Final = 60.0

say: Final = print

pytestmark = pytest.mark.timeout(300 + 12 * PODS)


@pytest.fixture
def churn(gpus: GpuCluster, space: str) -> Iterator[PodChurn]:
    """Pods on a node with many cards, which advertises the resources of several dialects."""
    with gpus.reconfigured(stand_in_cards(CARDS, memory_mib=CARD_MIB), {"node_resources": OFFERED}):
        gpus.agent.wait_offered(OFFERED[0], 100 * CARDS)
        gpus.cluster.wait_until(lambda: all(totals(gpus).values()), what="all resources to be advertised")
        yield PodChurn(gpus, space, SEED)


def kill_agent_in_allocate(gpus: GpuCluster) -> None:
    """Kills the agent while kubelet waits for its answer; when no call comes within 5 s, at that moment."""
    gpus.agent.program.pause()
    try:
        gpus.cluster.wait_until(lambda: is_call_pending(gpus), what="a call of kubelet", seconds=5)
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


def test_pod_churn_survives_kills_of_kubelet_agent_and_containerd(churn: PodChurn, gpus: GpuCluster) -> None:
    empty = totals(gpus)
    churn.create(PODS)
    assert churn.violations(churn.wait_settled()) == []
    for fault in FAULTS:
        churn.replace_failed()
        before = churn.running()
        churn.delete(PODS // 3)
        churn.create(PODS // 3)
        moment = inject(fault, gpus)
        settled = churn.wait_settled()
        say(f"{fault.__name__}: {moment}; {summary(churn)}")
        assert churn.violations(settled, before) == []
    check_crashed_containers_get_their_cards(churn, gpus)
    assert len(churn.running()) >= PODS // 3
    gpus.agent.restart()
    failed = sum(map(has_failed, churn.pods()))
    gpus.cluster.wait_until(lambda: failed_admissions(gpus) == failed, what=f"{failed} failed pods to be counted")
    check_nothing_is_left(churn, gpus, empty)


def inject(fault: Callable[[GpuCluster], None], gpus: GpuCluster) -> str:
    try:
        fault(gpus)
    except NotReadyError as error:
        return f"without the call that it should hit: {error}".splitlines()[0]
    return "during the call"


def summary(churn: PodChurn) -> str:
    pods = churn.pods()
    return f"{len(pods)} pods, {sum(map(is_running, pods))} running, {sum(map(has_failed, pods))} failed"


def check_crashed_containers_get_their_cards(churn: PodChurn, gpus: GpuCluster) -> None:
    crashed = churn.random.sample(running := churn.running(), min(5, len(running)))
    for each in crashed:
        kill_container(gpus.node, each, "containers-0")
    restarted = [wait_restarted(gpus, each, "containers-0") for each in crashed]
    assert [wrong for each in restarted for wrong in wrong_cards(gpus.cluster, each)] == []


def totals(gpus: GpuCluster) -> dict[str, int]:
    return {resource: gpus.agent.offered(resource) for resource in OFFERED}


def check_nothing_is_left(churn: PodChurn, gpus: GpuCluster, empty: dict[str, int]) -> None:
    churn.delete_all()
    gpus.cluster.wait_until(
        lambda: totals(gpus) == empty, what=f"the totals of an empty node, {empty}", seconds=TOTALS_WITHIN_S
    )
    gpus.cluster.wait_until(lambda: not leftovers(gpus.node), what="all slots to be cleared", seconds=TOTALS_WITHIN_S)
