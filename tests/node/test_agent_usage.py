"""Usage on a real node: gpu-manager's four gauges, and `halfcard top` through the API server's proxy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from cli.__main__ import main as halfcard
from devcluster.objects import Object
from halfcard import names
from tests.builders import pod
from tests.nvml.stand_in import StandInProcess, stand_in_cards

from .gpu_cluster import GpuCluster

NAMESPACE: Final = "default"
GAUGES: Final = """\
# HELP container_gpu_memory_total gpu memory usage in MiB
# TYPE container_gpu_memory_total gauge
container_gpu_memory_total{container_name="tensorflow",gpu_memory="gpu0",namespace="default",node="gpu-a",pod_name="vcuda"} MEMORY
container_gpu_memory_total{container_name="tensorflow",gpu_memory="total",namespace="default",node="gpu-a",pod_name="vcuda"} MEMORY
# HELP container_gpu_utilization gpu utilization
# TYPE container_gpu_utilization gauge
container_gpu_utilization{container_name="tensorflow",gpu="gpu0",namespace="default",node="gpu-a",pod_name="vcuda"} CORES
container_gpu_utilization{container_name="tensorflow",gpu="total",namespace="default",node="gpu-a",pod_name="vcuda"} CORES
# HELP container_request_gpu_memory request of gpu memory in MiB
# TYPE container_request_gpu_memory gauge
container_request_gpu_memory{container_name="tensorflow",namespace="default",node="gpu-a",pod_name="vcuda",req_of_gpu_memory="total"} 1024
# HELP container_request_gpu_utilization request of gpu utilization
# TYPE container_request_gpu_utilization gauge
container_request_gpu_utilization{container_name="tensorflow",namespace="default",node="gpu-a",pod_name="vcuda",req_of_gpu="total"} 0.10000000149011612
"""  # noqa: E501 - as gpu-manager writes it


@pytest.fixture(scope="module")
def vcuda(gpus: GpuCluster) -> Iterator[Object]:
    """A running pod with a tenth of the node's only card."""
    limits = {names.VCUDA_CORE: 10, names.VCUDA_MEMORY: 4}
    with gpus.reconfigured(stand_in_cards(1)) as agent, gpus.space(NAMESPACE) as space:
        agent.wait_offered(names.VCUDA_CORE, 100)
        yield gpus.run(space, pod("vcuda").container(name="tensorflow", limits=limits))


@pytest.fixture
def container_process(gpus: GpuCluster, vcuda: Object) -> Iterator[int]:
    """The pid on the node of a process in the container, which uses the card."""
    (card,) = gpus.agent.driver.cards
    pid = gpus.first_process(vcuda)
    gpus.agent.driver.processes(card.uuid, StandInProcess(pid, memory_mib=300, cores_pct=5))
    gpus.agent.driver.change(card.uuid, used_mib=310, cores_pct=6)
    yield pid
    gpus.agent.driver.processes(card.uuid)


def gauges(gpus: GpuCluster) -> str:
    """gpu-manager's metrics, without Halfcard's own."""
    status, text = gpus.agent.get(names.GPU_MANAGER_METRICS_PATH, gpus.agent.token())
    assert status == 200
    return text[: text.index("# HELP halfcard_")]


@pytest.mark.usefixtures("vcuda")
def test_an_idle_container_has_the_gauges_of_gpu_manager(gpus: GpuCluster) -> None:
    expected = GAUGES.replace("MEMORY", "0").replace("CORES", "0")
    gpus.cluster.wait_until(lambda: gauges(gpus) == expected, what="the four gauges")


def test_a_process_is_counted_for_its_container(gpus: GpuCluster, container_process: int) -> None:
    expected = GAUGES.replace("MEMORY", "300").replace("CORES", "5")
    gpus.cluster.wait_until(lambda: gauges(gpus) == expected, what=f"process {container_process} to be counted")


def top(gpus: GpuCluster, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The output of `halfcard top` for an admin."""
    assert halfcard(["top", *arguments, "--kubeconfig", str(gpus.cluster.admin.kubeconfig)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.mark.usefixtures("container_process")
def test_top_shows_nodes_through_the_api_server(gpus: GpuCluster, capsys: pytest.CaptureFixture[str]) -> None:
    _, row, _ = top(gpus, capsys, "nodes").splitlines()
    assert row.split() == ["gpu-a", "1:", "1", "shared", "6/10/100", "310/1024/15109", "1"]


def test_top_shows_containers_with_their_processes(
    gpus: GpuCluster, container_process: int, capsys: pytest.CaptureFixture[str]
) -> None:
    _, row = top(gpus, capsys, "pods").splitlines()
    assert row.split() == ["default/vcuda/tensorflow@gpu-a", "0", "5/10", "300/1024", str(container_process)]


@pytest.mark.usefixtures("vcuda")
def test_usage_is_only_for_tokens_that_may_read_it(gpus: GpuCluster) -> None:
    agent, cluster = gpus.agent, gpus.cluster
    tenant = cluster.service_account(NAMESPACE, "prometheus")
    for path in (names.USAGE_PATH, names.METRICS_PATH, names.GPU_MANAGER_METRICS_PATH):
        assert agent.get(path)[0] == 404
        assert agent.get(path, "guessed")[0] == 401
        status, why = agent.get(path, tenant.token)
        assert status == 403 and f"{tenant.name} may not get" in why
    granted = (f"--clusterrole={names.USAGE_ROLE}", f"--serviceaccount={NAMESPACE}:prometheus")
    assert cluster.kubectl("create", "clusterrolebinding", "reads-usage", *granted).code == 0
    cluster.wait_until(lambda: agent.get(names.METRICS_PATH, tenant.token)[0] == 200, what="the metrics to be readable")


@pytest.mark.usefixtures("vcuda")
def test_a_process_outside_of_all_pods_is_reported(gpus: GpuCluster) -> None:
    (card,) = gpus.agent.driver.cards
    gpus.agent.driver.processes(card.uuid, StandInProcess(1, memory_mib=200))
    status, text = gpus.agent.get(names.USAGE_PATH, gpus.agent.token())
    gpus.agent.driver.processes(card.uuid)
    assert status == 200
    assert "process 1 uses 200 MiB: it belongs to no pod" in " ".join(text.split())


def test_a_container_that_uses_more_than_its_limit_has_an_event(gpus: GpuCluster, vcuda: Object) -> None:
    (card,) = gpus.agent.driver.cards
    gpus.agent.driver.processes(card.uuid, StandInProcess(gpus.first_process(vcuda), memory_mib=9216))

    def messages() -> list[str]:
        events = gpus.cluster.request("GET", f"/api/v1/namespaces/{NAMESPACE}/events").must()["items"]
        return [each["message"] for each in events if each["reason"] == "CardMemoryExceeded"]

    gpus.cluster.wait_until(lambda: bool(messages()), what="the event at the pod")
    gpus.agent.driver.processes(card.uuid)
    assert "tensorflow uses 9216 MiB of card 0, and was granted 1024 MiB" in messages()[0]
