"""What a pod is charged, in every system's words; the formula is that of native quota."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.placing.demand import needs_of
from halfcard.pod.request_totals import pod_cost
from halfcard.pod.requests import read_pod
from halfcard.quota.charge import charge
from halfcard.quota.ledger import Amounts
from tests.builders import PodBuilder, pod

WORDS: Final = Dialects()


def charged(built: PodBuilder) -> Amounts:
    return charge(needs_of(read_pod(built.read, WORDS))[1])


CHARGES: Final[dict[str, tuple[PodBuilder, Amounts]]] = {
    "a share": (pod().asks(core=30, memory=20), {"cores": 30, "memory": 5120, "shares": 1}),
    "whole cards": (pod().asks(core=200), {"cores": 200, "cards": 2}),
    "halves of two cards": (pod().asks(sgpu=2), {"cores": 100, "shares": 2}),
    "memory alone": (pod().asks(**{names.ALIYUN_GPU_MEM: "3"}), {"memory": 3072, "shares": 1}),
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


CONTAINERS: Final = st.lists(st.tuples(st.sampled_from(["init", "sidecar", "asks"]), st.integers(1, 99)), max_size=6)


@given(CONTAINERS)
def test_cores_are_charged_as_native_quota_charges_them(containers: list[tuple[str, int]]) -> None:
    built = pod()
    for word, cores in containers:
        built = getattr(built, word)(core=cores, memory=1)
    native = pod_cost(built.read, frozenset({names.VCUDA_CORE})).get(names.VCUDA_CORE)
    assert charged(built).get("cores", 0) == (0 if native is None else native.as_int())
