"""Time slices by NVIDIA's ConfigMap, which is edited while the agent runs; pods request NVIDIA's resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from devcluster.objects import Object
from halfcard import names
from tests.builders import pod
from tests.cluster.pods import get_pod, wait_for_phase
from tests.cluster.site import cards_of
from tests.nvml.stand_in import stand_in_cards

from .container_report import wrong_cards
from .gpu_cluster import GpuCluster
from .gpu_faults import restart_kubelet
from .node_description import NodeResources, describe_node

CONFIG: Final = "time-slicing-config"
DEFAULT: Final = "tesla-t4"
SETTINGS: Final = {"time_slicing": {"config": f"{names.NAMESPACE}/{CONFIG}", "default": DEFAULT}}
RESOURCES: Final = (names.NVIDIA_GPU, names.NVIDIA_GPU_SHARED)


def slices(replicas: object, *switches: str) -> str:
    """A configuration as NVIDIA documents it."""
    lines = "".join(f"    {switch}: true\n" for switch in switches)
    return f"""\
version: v1
sharing:
  timeSlicing:
{lines}    resources:
    - name: nvidia.com/gpu
      replicas: {replicas}
"""


def configure(gpus: GpuCluster, data: Mapping[str, str]) -> None:
    """Writes the ConfigMap."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG}, "data": dict(data)}
    gpus.cluster.client.apply(gpus.cluster.admin, f"/api/v1/namespaces/{names.NAMESPACE}/configmaps", config)


def label(gpus: GpuCluster, *labels: str) -> None:
    assert gpus.cluster.kubectl("label", "node", gpus.node.name, *labels).code == 0


@pytest.fixture(scope="module")
def one_card(gpus: GpuCluster) -> Iterator[GpuCluster]:
    """A node with one card in four slices."""
    configure(gpus, {DEFAULT: slices(4)})
    with gpus.reconfigured(stand_in_cards(1), SETTINGS):
        restart_kubelet(gpus)  # otherwise it shows the resources of an earlier agent for five minutes
        yield gpus


@pytest.fixture
def four_slices(one_card: GpuCluster) -> Iterator[NodeResources]:
    """Restores four slices before each test, and removes the label of the node after it."""
    configure(one_card, {DEFAULT: slices(4)})
    listing = NodeResources(one_card, *RESOURCES)
    listing.wait_for(4, 0)
    yield listing
    label(one_card, f"{names.TIME_SLICING_LABEL}-")


def test_a_fifth_pod_on_four_slices_waits_until_there_are_more_slices(
    one_card: GpuCluster, four_slices: NodeResources, space: str
) -> None:
    deployment = [pod(f"test-{number}").asks(gpu=1) for number in range(5)]
    for built in deployment[:4]:
        assert wrong_cards(one_card.cluster, one_card.run(space, built)) == []
    fifth = one_card.create(space, deployment[4])
    one_card.cluster.wait_until(
        lambda: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu." in describe(one_card, space, fifth),
        what="the fifth pod to wait for a slice",
    )
    four_slices.wait_for(4, 0, used=(4, 0))
    configure(one_card, {DEFAULT: slices(6)})
    four_slices.wait_for(6, 0)
    assert len({tuple(cards_of(each)["containers-0"]) for each in wait_running(one_card, space, 5)}) == 1


def wait_running(gpus: GpuCluster, space: str, count: int) -> list[Object]:
    return [wait_for_phase(gpus.cluster, space, f"test-{number}", "Running") for number in range(count)]


def describe(gpus: GpuCluster, space: str, name: str) -> str:
    return gpus.cluster.kubectl("describe", "pod", name, f"--namespace={space}").stdout


def test_a_node_label_selects_the_time_slicing_configuration(
    one_card: GpuCluster, four_slices: NodeResources, space: str
) -> None:
    configure(one_card, {DEFAULT: slices(4), "own-name": slices(8, "renameByDefault"), "whole": "version: v1"})
    label(one_card, f"{names.TIME_SLICING_LABEL}=own-name")
    four_slices.wait_for(1, 8)
    report = one_card.report(one_card.run(space, pod("slice").asks(gpu_shared=1)))
    assert [each["memory_mib"] for each in report.limits["cards"]] == [None]
    four_slices.wait_for(0, 8, used=(0, 1))
    assert one_card.cluster.kubectl("delete", "pod", "slice", f"--namespace={space}").code == 0
    label(one_card, "--overwrite", f"{names.TIME_SLICING_LABEL}=whole")
    four_slices.wait_for(1, 0)


def test_a_request_for_two_slices_is_refused_if_the_configuration_forbids_it(
    one_card: GpuCluster, four_slices: NodeResources, space: str
) -> None:
    configure(one_card, {DEFAULT: slices(5, "failRequestsGreaterThanOne")})
    four_slices.wait_for(5, 0)
    name = one_card.create(space, pod("greedy").asks(gpu=2))
    one_card.cluster.wait_until(
        lambda: get_pod(one_card.cluster, space, name)["status"]["phase"] == "Failed", what="the pod to fail"
    )
    description = describe(one_card, space, name)
    assert "UnexpectedAdmissionError" in description
    assert "maximum request size for shared resources is 1; found 2" in description
    one_card.cluster.wait_until(lambda: "CardsNotThere" in describe(one_card, space, name), what="the agent's Event")
    one_card.run(space, pod("modest").asks(gpu=1))


def test_an_invalid_configuration_is_reported_and_the_previous_one_stays(
    one_card: GpuCluster, four_slices: NodeResources
) -> None:
    configure(one_card, {DEFAULT: slices("many")})
    one_card.cluster.wait_until(
        lambda: 'replicas: got "many"' in describe_node(one_card), what="the mistake in an Event of the node"
    )
    four_slices.wait_for(4, 0)
    label(one_card, f"{names.TIME_SLICING_LABEL}=unknown")
    one_card.cluster.wait_until(
        lambda: 'got "unknown"' in describe_node(one_card), what="the wrong label in an Event of the node"
    )
    four_slices.wait_for(4, 0)
