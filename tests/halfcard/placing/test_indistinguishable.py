"""Which containers are indistinguishable, checked against everything that kubelet might do."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from halfcard.claims import ContainerStage
from halfcard.placing.indistinguishable import ResourceIds, candidates, same_cards_as
from tests.builders import PodBuilder, pod
from tests.deviceplugin.device_manager import every_way

from .examples import demand_of

INIT, APP, SIDECAR = ContainerStage.INIT, ContainerStage.APP, ContainerStage.SIDECAR

CANDIDATES: Final[dict[str, tuple[list[tuple[ContainerStage, int]], int | None, int, tuple[int, ...]]]] = {
    "one app": ([(APP, 1)], 0, 1, (0,)),
    "an init hands on": ([(INIT, 1), (APP, 1)], 1, 1, (0, 1)),
    "to the first that asks for as many": ([(INIT, 1), (APP, 1), (APP, 1)], 2, 1, (2,)),
    "an init that asked for more": ([(INIT, 2), (APP, 1)], 1, 1, (1,)),
    "and starts itself": ([(INIT, 2), (APP, 1)], None, 2, (0,)),
    "somebody between took some": ([(INIT, 2), (APP, 1), (APP, 2)], 2, 2, (2,)),
    "a sidecar before": ([(SIDECAR, 1), (INIT, 1), (APP, 1)], 0, 1, (0,)),
    "a larger pool may leave them": ([(INIT, 2), (INIT, 1), (APP, 1), (APP, 1)], 3, 1, (1, 3)),
    "two inits": ([(INIT, 1), (INIT, 1)], None, 1, (0, 1)),
    "one whose ids somebody surely has": ([(INIT, 1), (SIDECAR, 1), (INIT, 1)], None, 1, (2,)),
}


@pytest.mark.parametrize(("written", "listed", "amount", "wanted"), CANDIDATES.values(), ids=CANDIDATES)
def test_containers_that_may_have_exactly_these_ids(
    written: list[tuple[ContainerStage, int]], listed: int | None, amount: int, wanted: tuple[int, ...]
) -> None:
    assert candidates([ResourceIds(*each) for each in written], listed, amount) == wanted


STAGES: Final = st.sampled_from([INIT, INIT, SIDECAR, APP])
IN_ORDER: Final = st.lists(st.tuples(STAGES, st.integers(1, 3)), min_size=1, max_size=6).map(
    lambda found: sorted(found, key=lambda each: each[0] is APP)
)


@settings(max_examples=300)
@example([(INIT, 2), (INIT, 1), (APP, 1), (APP, 1)])
@example([(INIT, 2), (INIT, 2), (SIDECAR, 1), (INIT, 3), (APP, 2), (APP, 2)])
@given(IN_ORDER)
def test_candidates_are_exactly_the_possible_containers(written: list[tuple[ContainerStage, int]]) -> None:
    might_be = defaultdict(set)
    for ids in every_way(written):
        running = {ids[at]: at for at, (stage, _) in enumerate(written) if stage is not INIT}
        for at, each in enumerate(ids):
            might_be[running.get(each), len(each)].add(at)
    given_amounts = [ResourceIds(*each) for each in written]
    for (listed, amount), starting in might_be.items():
        assert set(candidates(given_amounts, listed, amount)) == starting


TIES: Final[dict[str, tuple[PodBuilder, list[int | None]]]] = {
    "no container without init containers": (pod().asks(gpu=1).asks(gpu=1).sidecar(gpu=1), [None, None, None]),
    "two later ones that may each have an init's ids": (
        pod().init(gpu=2).init(gpu=1).asks(gpu=1).asks(gpu=1),
        [None, 0, None, 0],
    ),
    "the second later one never has": (pod().init(gpu=1).asks(gpu=1).asks(gpu=1), [None, None, 0]),
    "a sidecar that started before": (pod().sidecar(gpu=1).init(gpu=1), [None, None]),
    "as many of one resource are enough": (
        pod().init(core=30, memory=60).asks(core=30, memory=20).asks(core=80, memory=20),
        [None, None, 0],
    ),
    "as many units beside cards and beside a share": (
        pod().init(core=200, memory=20).asks(core=30, memory=20),
        [None, 0],
    ),
    "MiB have no ids": (pod().init(gpu_memory=4096).asks(gpu_memory=4096), [None, None]),
    "nor have HAMi's words": (
        pod().init(gpu=2, gpumem=4096, gpucores=30).asks(gpu=1, gpumem=4096, gpucores=30),
        [None, None],
    ),
    "HAMi's cards have": (pod().init(gpumem=4096).asks(gpumem=1024), [None, 0]),
    "through one that is like both": (
        pod().init(core=30, memory=60).init(core=40, memory=60).asks(core=30, memory=20),
        [None, 0, 0],
    ),
    "not through one that surely took some": (
        pod().init(core=30, memory=60).asks(core=80, memory=20).asks(core=30, memory=20),
        [None, None, None],
    ),
}


@pytest.mark.parametrize(("asking", "wanted"), TIES.values(), ids=TIES)
def test_claims_that_get_the_cards_of_an_earlier_one(asking: PodBuilder, wanted: list[int | None]) -> None:
    needs = demand_of(asking).needs
    assert [same_cards_as(needs, number) for number in range(len(needs))] == wanted
