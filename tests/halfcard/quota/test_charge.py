"""What a pod is charged, in every system's words; the formula is that of native quota."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names
from halfcard.cards import Card
from halfcard.claims import CARDS, CORES, MEMORY, SHARES, ContainerStage, Need
from halfcard.dialects import Dialects
from halfcard.placing.card_usage import CardMode, CardUse, take, untouched, use_of, worth
from halfcard.placing.demand import needs_of
from halfcard.pod.request_totals import pod_cost
from halfcard.pod.requests import read_pod
from halfcard.quota.charge import charge, of_claim, uncounted
from halfcard.quota.ledger import Amounts
from tests.builders import PodBuilder, pod
from tests.halfcard.placing.examples import HAMI, WRITTEN, Written

WORDS: Final = Dialects()


def charged(built: PodBuilder) -> Amounts:
    return charge(needs_of(read_pod(built.read, WORDS))[1])


CHARGES: Final[dict[str, tuple[PodBuilder, Amounts]]] = {
    "a share": (pod().asks(core=30, memory=20), {"cores": 30, "memory": 5120, "shares": 1}),
    "whole cards": (pod().asks(core=200), {"cores": 200, "cards": 2}),
    "halves of two cards": (pod().asks(sgpu=2), {"cores": 100, "shares": 2}),
    "memory alone": (pod().asks(**{names.ALIYUN_GPU_MEM: "3"}), {"memory": 3072, "shares": 1}),
    "a part of each card's memory": (pod().asks(gpu=2, gpumem_percentage=30), {"cores": 60, "shares": 2}),
    "cores beside a part of the memory": (
        pod().asks(gpu=1, gpumem_percentage=30, gpucores=40),
        {"cores": 40, "shares": 1},
    ),
    "all memory of eight cards": (pod().asks(gpu=8, gpumem_percentage=100), {"cores": 800, "cards": 8}),
    "cores without memory, which nothing then limits": (pod().asks(gpu=1, gpucores=30), {"cores": 100, "cards": 1}),
    "a time slice": (pod().asks(gpu_shared=1), {"shares": 1}),
    "no card": (pod().container(), {}),
    "two containers": (
        pod().asks(core=30, memory=4).asks(core=20, memory=4),
        {"cores": 50, "memory": 2048, "shares": 2},
    ),
    "init containers run one by one": (
        pod().init(core=60, memory=4).init(core=50, memory=8).asks(core=30, memory=4),
        {"cores": 60, "memory": 2048, "shares": 1},
    ),
    "a sidecar stays": (
        pod().sidecar(core=20, memory=4).init(core=60, memory=4).asks(core=30, memory=4),
        {"cores": 80, "memory": 2048, "shares": 2},
    ),
    "a sidecar that starts later does not run yet": (
        pod().init(core=60, memory=4).sidecar(core=20, memory=4).asks(core=30, memory=4),
        {"cores": 60, "memory": 2048, "shares": 2},
    ),
}


@pytest.mark.parametrize(("built", "amounts"), CHARGES.values(), ids=CHARGES)
def test_a_pod_is_charged_for_what_it_needs_at_once(built: PodBuilder, amounts: Amounts) -> None:
    assert charged(built) == amounts


UNCOUNTED: Final[dict[str, tuple[PodBuilder, frozenset[str]]]] = {
    "a share": (pod().asks(core=30, memory=20), frozenset()),
    "whole cards": (pod().asks(gpu=2), frozenset()),
    "memory alone": (pod().asks(gpu_memory=2048), frozenset()),
    "all memory": (pod().asks(gpu=8, gpumem_percentage=100), frozenset()),
    "a half": (pod().asks(sgpu=1), frozenset({"memory"})),
    "a part of the memory": (pod().asks(core=30, memory=20).asks(gpu=1, gpumem_percentage=30), frozenset({"memory"})),
    "a time slice": (pod().asks(gpu_shared=1), frozenset({"cores", "memory"})),
}


@pytest.mark.parametrize(("built", "unknown"), UNCOUNTED.values(), ids=UNCOUNTED)
def test_what_depends_on_the_card_is_named_and_not_charged(built: PodBuilder, unknown: frozenset[str]) -> None:
    assert uncounted(needs_of(read_pod(built.read, WORDS))[1]) == unknown


@given(st.one_of(WRITTEN, HAMI), st.sampled_from([8192, 22016]))
def test_a_claim_is_charged_for_all_that_it_takes_of_its_cards(written: Written, card_mib: int) -> None:
    """In every dialect: for whole cards where it leaves nothing of them to others, and else for cores and memory."""
    claim, card = written.claim, Card(0, "A10", card_mib, replicas=3)
    use = use_of(claim, card, names.NVIDIA_GPU_SHARED)
    left = take(card, untouched(card), use)
    if left is None:
        return  # no card has so much
    charged, unknown = of_claim(claim), uncounted([Need(ContainerStage.APP, 0, claim)])
    is_gone = use.mib != claim.memory_mib and all(take(card, left, other) is None for other in LEAST)
    assert charged[CARDS] == (claim.cards if is_gone else 0) and charged[SHARES] == claim.cards - charged[CARDS]
    cores, mib = worth(card, use)
    assert CORES in unknown or charged[CORES] >= claim.cards * cores
    assert is_gone or MEMORY in unknown or charged[MEMORY] == claim.cards * mib


LEAST: Final = [CardUse(CardMode.SHARED, 0, 1, 0), CardUse(CardMode.HALVES, 0, 0, 1), CardUse(CardMode.SLICES, 0, 0, 1)]
"""The smallest uses that another pod can have of a card."""

CONTAINERS: Final = st.lists(st.tuples(st.sampled_from(["init", "sidecar", "asks"]), st.integers(1, 99)), max_size=6)


@given(CONTAINERS)
def test_cores_are_charged_as_native_quota_charges_them(containers: list[tuple[str, int]]) -> None:
    built = pod()
    for word, cores in containers:
        built = getattr(built, word)(core=cores, memory=1)
    native = pod_cost(built.read, frozenset({names.VCUDA_CORE})).get(names.VCUDA_CORE)
    assert charged(built).get("cores", 0) == (0 if native is None else native.as_int())
