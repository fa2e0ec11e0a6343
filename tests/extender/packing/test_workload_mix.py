from __future__ import annotations

from typing import Final

import pytest

from extender.packing.fleet import NodeShape, usual_card_mib
from extender.packing.workload_mix import PodClass, WorkloadMix, pod_class_of
from halfcard.claims import Claim, ContainerStage, Need, Part, memory_share, whole_cards
from halfcard.placing.demand import Demand
from halfcard.pod.card_preferences import CardPreferences

CARD_MIB: Final = 16000


def share(cores: int | None, memory_mib: int | None = 0, cards: int = 1) -> Claim:
    return Claim(cards, cores, memory_mib, exclusive=False, distinct=cards > 1, dialect="tencent")


HALF: Final = Claim(2, None, None, exclusive=False, distinct=True, dialect="tuya", memory_pct=50, part=Part.HALF)

ASKED: Final[dict[str, tuple[list[Claim], tuple[int, int]]]] = {
    "a share by cores": ([share(30)], (1, 30)),
    "a share by memory": ([memory_share(CARD_MIB // 4, "aliyun")], (1, 25)),
    "the larger of cores and memory": ([share(30, CARD_MIB // 2)], (1, 50)),
    "more memory than a usual card has": ([share(30, 2 * CARD_MIB)], (1, 100)),
    "whole cards": ([whole_cards(4, "nvidia")], (4, 100)),
    "halves": ([HALF], (2, 50)),
    "shares of several cards": ([share(30, 0, cards=2)], (2, 30)),
    "containers that fit on one card together": ([share(30), share(40)], (1, 70)),
    "containers that do not": ([share(30), share(80)], (2, 80)),
    "whole cards in several containers": ([whole_cards(2, "nvidia"), whole_cards(1, "nvidia")], (3, 100)),
    "nothing": ([], (0, 0)),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_class_of_a_pod_has_its_cards_and_its_share_of_each(name: str) -> None:
    claims, (cards, hundredths) = ASKED[name]
    demand = Demand(tuple(Need(ContainerStage.APP, 0, claim) for claim in claims), cpu_milli=4000, memory_mib=8192)
    kind = pod_class_of(demand).on_cards_of(CARD_MIB)
    assert (kind.cards, kind.share, kind.cpu_milli, kind.memory_mib) == (cards, hundredths, 4000, 8192)


def test_init_containers_reuse_the_cards_of_the_other_containers() -> None:
    needs = (Need(ContainerStage.APP, 0, share(30)), Need(ContainerStage.INIT, 0, share(20)))
    assert pod_class_of(Demand(needs)).share == 30


def test_a_class_may_use_only_its_models() -> None:
    kind = pod_class_of(Demand((Need(ContainerStage.APP, 0, share(30)),), CardPreferences(models=("a100", "t4"))))
    assert [kind.may_use(model) for model in ("Tesla T4", "NVIDIA-A100-SXM4", "V100")] == [True, True, False]


def test_the_common_classes_are_the_most_frequent_up_to_a_share() -> None:
    one, two, three = (PodClass(0, 0, 1, size) for size in (10, 20, 30))
    mix = WorkloadMix(((three, 5.0), (one, 60.0), (two, 35.0)))
    kinds, weights = zip(*mix.common(0.9), strict=True)
    assert kinds == (one, two)
    assert weights == pytest.approx((60 / 95, 35 / 95))
    assert len(mix.common(1.0)) == 3
    assert WorkloadMix(()).common(0.9) == ()


def test_classes_that_become_equal_are_merged() -> None:
    mix = WorkloadMix(((PodClass(1, 5, 1, 10), 2.0), (PodClass(1, 7, 1, 10), 3.0)))
    assert mix.as_seen(lambda kind: kind._replace(memory_mib=0)).kinds == ((PodClass(1, 0, 1, 10), 5.0),)


@pytest.mark.parametrize(
    ("sizes", "usual"),
    [([], 0), ([(0, 9)], 0), ([(16, 1)], 16), ([(16, 3), (80, 2)], 16), ([(0, 9), (16, 1), (80, 2)], 80)],
)
def test_the_usual_card_is_the_median(sizes: list[tuple[int, int]], usual: int) -> None:
    assert usual_card_mib(tuple((NodeShape("", 2, mib, 0, 0), nodes) for mib, nodes in sizes)) == usual
