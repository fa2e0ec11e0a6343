"""Time slices by NVIDIA's ConfigMap: it is edited while the agent runs, and pods ask in the words they always used."""

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

from .described import Listing, described
from .gpu_cluster import GpuCluster
from .gpu_faults import restart_kubelet
from .told import differences

CONFIG: Final = "time-slicing-config"
DEFAULT: Final = "tesla-t4"
SETTINGS: Final = {"time_slicing": {"config": f"{names.NAMESPACE}/{CONFIG}", "default": DEFAULT}}
RESOURCES: Final = (names.NVIDIA_GPU, names.NVIDIA_GPU_SHARED)


def slices(replicas: object, *switches: str) -> str:
    """As people write it."""
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
    """What the ConfigMap says from now on."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG}, "data": dict(data)}
    gpus.cluster.client.apply(gpus.cluster.admin, f"/api/v1/namespaces/{names.NAMESPACE}/configmaps", config)


def label(gpus: GpuCluster, *labels: str) -> None:
    assert gpus.cluster.kubectl("label", "node", gpus.node.name, *labels).code == 0


@pytest.fixture(scope="module")
def card(gpus: GpuCluster) -> Iterator[GpuCluster]:
    """One card, in four slices."""
    configure(gpus, {DEFAULT: slices(4)})
    with gpus.equipped(stand_in_cards(1), SETTINGS):
        restart_kubelet(gpus)  # for five minutes it shows what an agent before this one offered
        yield gpus


@pytest.fixture
def four(card: GpuCluster) -> Iterator[Listing]:
    """As it is before each test, and after it."""
    configure(card, {DEFAULT: slices(4)})
    listing = Listing(card, *RESOURCES)
    listing.shows(4, 0)
    yield listing
    label(card, f"{names.TIME_SLICING_LABEL}-")


def test_of_five_pods_four_share_the_card_and_the_fifth_starts_when_there_are_more_slices(
    card: GpuCluster, four: Listing, space: str
) -> None:
    deployment = [pod(f"test-{number}").asks(gpu=1) for number in range(5)]
    for built in deployment[:4]:
        assert differences(card.cluster, card.run(space, built)) == []
    fifth = card.create(space, deployment[4])
    card.cluster.wait_until(
        lambda: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu." in describe(card, space, fifth),
        what="the fifth to wait for a slice",
    )
    four.shows(4, 0, used=(4, 0))
    configure(card, {DEFAULT: slices(6)})
    four.shows(6, 0)
    assert len({tuple(cards_of(each)["containers-0"]) for each in running(card, space, 5)}) == 1


def running(gpus: GpuCluster, space: str, count: int) -> list[Object]:
    return [wait_for_phase(gpus.cluster, space, f"test-{number}", "Running") for number in range(count)]


def describe(gpus: GpuCluster, space: str, name: str) -> str:
    return gpus.cluster.kubectl("describe", "pod", name, f"--namespace={space}").stdout


def test_the_label_of_the_node_chooses_among_named_configurations(card: GpuCluster, four: Listing, space: str) -> None:
    configure(card, {DEFAULT: slices(4), "own-name": slices(8, "renameByDefault"), "whole": "version: v1"})
    label(card, f"{names.TIME_SLICING_LABEL}=own-name")
    four.shows(1, 8)
    told = card.ask(card.run(space, pod("slice").asks(gpu_shared=1)))
    assert [each["memory_mib"] for each in told.limits["cards"]] == [None]
    four.shows(0, 8, used=(0, 1))
    assert card.cluster.kubectl("delete", "pod", "slice", f"--namespace={space}").code == 0
    label(card, "--overwrite", f"{names.TIME_SLICING_LABEL}=whole")
    four.shows(1, 0)


def test_a_container_that_asks_for_two_slices_is_refused_where_the_configuration_says_so(
    card: GpuCluster, four: Listing, space: str
) -> None:
    configure(card, {DEFAULT: slices(5, "failRequestsGreaterThanOne")})
    four.shows(5, 0)
    name = card.create(space, pod("greedy").asks(gpu=2))
    card.cluster.wait_until(lambda: get_pod(card.cluster, space, name)["status"]["phase"] == "Failed", what="a refusal")
    said = describe(card, space, name)
    assert "UnexpectedAdmissionError" in said
    assert "maximum request size for shared resources is 1; found 2" in said
    card.run(space, pod("modest").asks(gpu=1))


def test_a_configuration_that_cannot_be_read_changes_nothing_and_is_told(card: GpuCluster, four: Listing) -> None:
    configure(card, {DEFAULT: slices("many")})
    card.cluster.wait_until(
        lambda: 'replicas: got "many"' in described(card), what="the mistake to stand among the node's events"
    )
    four.shows(4, 0)
    label(card, f"{names.TIME_SLICING_LABEL}=nobody-wrote-it")
    card.cluster.wait_until(lambda: 'got "nobody-wrote-it"' in described(card), what="the wrong label to be told")
    four.shows(4, 0)
