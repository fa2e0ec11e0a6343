"""The totals that a node advertises, as `kubectl describe node` shows them: the numbers that each system documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from halfcard import names
from tests.builders import pod
from tests.cluster.pods import wait_for_phase
from tests.cluster.site import cards_of
from tests.nvml.stand_in import stand_in_cards

from .container_report import wrong_cards
from .gpu_cluster import GpuCluster, gpu_cluster
from .node_description import NodeResources

TENCENT: Final = (names.VCUDA_CORE, names.VCUDA_MEMORY)
TUYA: Final = (names.NVIDIA_GPU, names.TUYA_SGPU, names.TUYA + names.VCUDA_MEMORY_SUFFIX)
MIB: Final = (
    names.VOLCANO_GPU_MEMORY,
    names.VOLCANO_GPU_NUMBER,
    names.ALIYUN_GPU_MEM,
    names.ALIYUN_GPU_COUNT,
)


@pytest.fixture(scope="module")
def four_cards(gpus: GpuCluster) -> Iterator[GpuCluster]:
    """A node with four T4s of 15109 MiB, and the resource names that are advertised by default."""
    with gpus.reconfigured(stand_in_cards(4)):
        yield gpus


def test_four_cards_of_16_gb_are_400_cores_and_236_memory_units_with_any_shares(
    four_cards: GpuCluster, space: str
) -> None:
    listing = NodeResources(four_cards, *TENCENT)
    listing.wait_for(400, 236, used=(0, 0))
    four_cards.run(space, pod("vcuda").asks(core=10, memory=4))
    listing.wait_for(400, 236, used=(10, 4))
    four_cards.run(space, pod("vcuda20").asks(core=20, memory=12))
    four_cards.run(space, pod("vcuda100").asks(core=100, memory=59))
    listing.wait_for(400, 236, used=(130, 75))
    four_cards.run(space, pod("vcuda200").asks(core=200, memory=128))  # more than two cards have
    listing.wait_for(400, 236, used=(330, 193))


def test_a_cordoned_card_keeps_its_pods_and_gets_no_new_ones(four_cards: GpuCluster, space: str) -> None:
    listing = NodeResources(four_cards, *TENCENT)
    listing.wait_for(400, 236)
    running = four_cards.run(space, pod("kept").asks(core=30, memory=10))
    (card,) = cards_of(running)["containers-0"]
    cordon(four_cards, f"{names.CORDONED_CARDS}={card}")
    listing.wait_for(330, 187, used=(30, 10))
    four_cards.run(space, pod("others").asks(core=300))
    late = four_cards.create(space, pod("late").asks(core=10, memory=4))
    four_cards.cluster.wait_until(
        lambda: "Insufficient" in description(four_cards, space, late), what="the last pod to wait for a card"
    )
    cordon(four_cards, f"{names.CORDONED_CARDS}-")
    listing.wait_for(400, 59)  # a whole card includes its memory, even if the pod requests only cores
    assert cards_of(wait_for_phase(four_cards.cluster, space, late, "Running"))["containers-0"] == [card]


def cordon(gpus: GpuCluster, annotation: str) -> None:
    assert gpus.cluster.kubectl("annotate", "node", gpus.node.name, annotation).code == 0


def description(gpus: GpuCluster, space: str, name: str) -> str:
    return gpus.cluster.kubectl("describe", "pod", name, f"--namespace={space}").stdout


def test_one_card_is_100_cores_and_59_memory_units(gpus: GpuCluster) -> None:
    with gpus.reconfigured(stand_in_cards(1)):
        NodeResources(gpus, *TENCENT).wait_for(100, 59)


def test_shares_start_on_eight_cards_with_more_memory_units_than_device_ids() -> None:
    """On a new node: on another, kubelet shows resources that it had before with amount 0 for five minutes."""
    cards = stand_in_cards(8, model="NVIDIA H200", memory_mib=143771)
    with gpu_cluster(cards=cards) as gpus, gpus.space("large") as space:
        listing = NodeResources(gpus, *TENCENT)
        listing.wait_for(800, 4488)
        share = gpus.run(space, pod("share").init(core=30, memory=40).asks(core=30, memory=20))
        listing.wait_for(800, 4488, used=(30, 40))
        assert wrong_cards(gpus.cluster, share) == []


def test_a_used_card_leaves_the_totals_of_other_modes_until_its_pod_is_deleted(gpus: GpuCluster) -> None:
    """The totals of a node with four cards of 22 GB, each of which is in one card mode at a time."""
    cards = stand_in_cards(4, model="NVIDIA A10", memory_mib=22016)
    with gpus.reconfigured(cards, {"node_resources": [*TUYA]}), gpus.space("locking") as space:
        listing = NodeResources(gpus, *TUYA)
        listing.wait_for(4, 8, 344, used=(0, 0, 0))
        gpus.run(space, pod("halves").asks(sgpu=2))
        listing.wait_for(2, 8, 172, used=(0, 2, 0))
        gpus.run(space, pod("memory").asks(tuya_memory=10))
        listing.wait_for(1, 6, 172, used=(0, 2, 10))
        gpus.run(space, pod("whole").asks(gpu=1))
        listing.wait_for(1, 4, 86, used=(1, 2, 10))
        for name, totals in (("whole", (1, 6, 172)), ("memory", (2, 8, 172)), ("halves", (4, 8, 344))):
            assert gpus.cluster.kubectl("delete", "pod", name, f"--namespace={space}").code == 0
            listing.wait_for(*totals)


def test_memory_is_advertised_in_mib_and_in_gib_with_the_number_of_cards(gpus: GpuCluster) -> None:
    with gpus.reconfigured(stand_in_cards(1), {"node_resources": [*MIB[:3]]}), gpus.space("counted") as space:
        listing = NodeResources(gpus, *MIB)
        listing.wait_for(15109, 1, 14, 1)
        gpus.run(space, pod("gpu-pod1").asks(gpu_memory=2048))
        listing.wait_for(15109, 0, 12, 1, used=(2048, 0, 0, 0))
