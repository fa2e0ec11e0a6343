"""How much a node offers, as `kubectl describe node` shows it: the numbers that people of each system know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from halfcard import names
from tests.builders import pod
from tests.cluster.pods import wait_for_phase
from tests.cluster.site import cards_of
from tests.nvml.stand_in import stand_in_cards

from .described import Listing
from .gpu_cluster import GpuCluster, gpu_cluster
from .told import differences

TENCENT: Final = (names.VCUDA_CORE, names.VCUDA_MEMORY)
TUYA: Final = (names.NVIDIA_GPU, names.TUYA_SGPU, names.TUYA + names.VCUDA_MEMORY_SUFFIX)
MIB: Final = (
    names.VOLCANO_GPU_MEMORY,
    names.VOLCANO_GPU_NUMBER,
    names.ALIYUN_GPU_MEM,
    names.ALIYUN_GPU_COUNT,
)


@pytest.fixture(scope="module")
def four(gpus: GpuCluster) -> Iterator[GpuCluster]:
    """T4s of 15109 MiB, under the names that are offered by default."""
    with gpus.equipped(stand_in_cards(4)):
        yield gpus


def test_four_cards_of_16_gb_are_400_and_236_and_shares_change_nothing(four: GpuCluster, space: str) -> None:
    listing = Listing(four, *TENCENT)
    listing.shows(400, 236, used=(0, 0))
    four.run(space, pod("vcuda").asks(core=10, memory=4))
    listing.shows(400, 236, used=(10, 4))
    four.run(space, pod("vcuda20").asks(core=20, memory=12))
    four.run(space, pod("vcuda100").asks(core=100, memory=59))
    listing.shows(400, 236, used=(130, 75))


def test_a_cordoned_card_gets_nothing_new_and_keeps_what_it_has(four: GpuCluster, space: str) -> None:
    listing = Listing(four, *TENCENT)
    listing.shows(400, 236)
    kept = four.run(space, pod("kept").asks(core=30, memory=10))
    (card,) = cards_of(kept)["containers-0"]
    cordon(four, f"{names.CORDONED_CARDS}={card}")
    listing.shows(330, 187, used=(30, 10))
    four.run(space, pod("others").asks(core=300))
    late = four.create(space, pod("late").asks(core=10, memory=4))
    four.cluster.wait_until(lambda: "Insufficient" in why(four, space, late), what="the last one to wait for a card")
    cordon(four, f"{names.CORDONED_CARDS}-")
    listing.shows(400, 59)  # whole cards take their memory along, also where nobody asks for it
    assert cards_of(wait_for_phase(four.cluster, space, late, "Running"))["containers-0"] == [card]


def cordon(gpus: GpuCluster, annotation: str) -> None:
    assert gpus.cluster.kubectl("annotate", "node", gpus.node.name, annotation).code == 0


def why(gpus: GpuCluster, space: str, name: str) -> str:
    return gpus.cluster.kubectl("describe", "pod", name, f"--namespace={space}").stdout


def test_one_card_is_100_and_59(gpus: GpuCluster) -> None:
    with gpus.equipped(stand_in_cards(1)):
        Listing(gpus, *TENCENT).shows(100, 59)


def test_eight_cards_of_141_gb_have_more_units_than_ids_and_serve_shares_all_the_same() -> None:
    """On a node of its own: for five minutes kubelet says of what had ids once that there is nothing of it."""
    cards = stand_in_cards(8, model="NVIDIA H200", memory_mib=143771)
    with gpu_cluster(cards=cards) as gpus, gpus.space("large") as space:
        listing = Listing(gpus, *TENCENT)
        listing.shows(800, 4488)
        share = gpus.run(space, pod("share").init(core=30, memory=40).asks(core=30, memory=20))
        listing.shows(800, 4488, used=(30, 40))
        assert differences(gpus.cluster, share) == []


def test_halves_memory_and_whole_cards_lock_cards_and_free_them_again(gpus: GpuCluster) -> None:
    """The listings of a node with four cards of 22 GB, each of which is sold in one way at a time."""
    cards = stand_in_cards(4, model="NVIDIA A10", memory_mib=22016)
    with gpus.equipped(cards, {"node_resources": [*TUYA]}), gpus.space("locking") as space:
        listing = Listing(gpus, *TUYA)
        listing.shows(4, 8, 344, used=(0, 0, 0))
        gpus.run(space, pod("halves").asks(sgpu=2))
        listing.shows(2, 8, 172, used=(0, 2, 0))
        gpus.run(space, pod("memory").asks(tuya_memory=10))
        listing.shows(1, 6, 172, used=(0, 2, 10))
        gpus.run(space, pod("whole").asks(gpu=1))
        listing.shows(1, 4, 86, used=(1, 2, 10))
        for name, totals in (("whole", (1, 6, 172)), ("memory", (2, 8, 172)), ("halves", (4, 8, 344))):
            assert gpus.cluster.kubectl("delete", "pod", name, f"--namespace={space}").code == 0
            listing.shows(*totals)


def test_memory_is_counted_in_mib_and_gib_beside_the_number_of_cards(gpus: GpuCluster) -> None:
    with gpus.equipped(stand_in_cards(1), {"node_resources": [*MIB[:3]]}), gpus.space("counted") as space:
        listing = Listing(gpus, *MIB)
        listing.shows(15109, 1, 14, 1)
        gpus.run(space, pod("gpu-pod1").asks(gpu_memory=2048))
        listing.shows(15109, 0, 12, 1, used=(2048, 0, 0, 0))
