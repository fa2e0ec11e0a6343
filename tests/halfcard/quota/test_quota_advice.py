"""What a message about a quota advises is accepted when it is tried, in the resources of every dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names
from halfcard.claims import CARDS, CORES, MEMORY
from halfcard.dialects import ALL, Dialects
from halfcard.placing.demand import Demand, needs_of
from halfcard.placing.driver_demand import may_go_to_driver
from halfcard.pod.request_totals import pod_cost
from halfcard.pod.requests import read_pod
from halfcard.quantity import Quantity
from halfcard.quota import budget_messages, native_messages
from halfcard.quota.charge import charge, uncounted
from halfcard.quota.gpu_quota import read_amounts
from halfcard.quota.ledger import Ledger, shortages
from halfcard.quota.native_quota import exceeded_by
from tests.builders import PodBuilder, pod

from ..native import quota, read

DIALECTS: Final = Dialects()
EXAMPLES: Final[list[dict[str, int]]] = [{**example} for dialect in ALL for example in dialect.examples]
_MISSING: Final = re.compile(r"([^\s(]+) more needed")
LEFT: Final = st.integers(0, 60000)


def asking(amounts: Mapping[str, int]) -> PodBuilder:
    return pod().container(limits={resource: str(amount) for resource, amount in amounts.items()})


def missing(message: str) -> dict[str, str]:
    """Returns how much more a message says is needed, by key, as it is written."""
    keys = re.findall(r"([^=,]+)=", message.partition("requested: ")[2].partition(", used: ")[0])
    return dict(zip(keys, _MISSING.findall(message), strict=True))


# --- GpuQuotas --------------------------------------------------------------------------------------------------------


@given(st.sampled_from(EXAMPLES), LEFT, LEFT)
def test_a_gpu_quota_that_is_raised_by_what_is_missing_has_room(example: dict[str, int], hard: int, used: int) -> None:
    asked = charge(needs_of(read_pod(asking(example).read, DIALECTS))[1])
    limits, usage = dict.fromkeys(asked, hard), dict.fromkeys(asked, used)
    short = shortages(Ledger(limits, committed=usage), asked)
    if short:
        more = read_amounts(missing(budget_messages.exceeded("team/gpu", short)))
        raised = {key: limit + more.get(key, 0) for key, limit in limits.items()}
        assert shortages(Ledger(raised, committed=usage), asked) == []
        tight = {key: limit - (key in more) for key, limit in raised.items()}
        assert {each.key for each in shortages(Ledger(tight, committed=usage), asked)} == more.keys()


GUESSES: Final[dict[str, list[dict[str, int]]]] = {
    CORES: [{names.NVIDIA_GPU_SHARED: 1}],
    MEMORY: [
        {names.NVIDIA_GPU_SHARED: 1},
        {names.TUYA_SGPU: 1},
        {names.NVIDIA_GPU: 1, names.HAMI_GPUMEM_PERCENTAGE: 50},
    ],
}
"""Requests whose use of the amount depends on the card."""
ADVISED: Final[dict[str, list[dict[str, int]]]] = {
    "cores, not slices": [
        {names.VCUDA_CORE: 50, names.VCUDA_MEMORY: 8},
        {names.NVIDIA_GPU: 1, names.HAMI_GPUCORES: 50, names.HAMI_GPUMEM: 2048},
    ],
    "an amount of memory": [
        {names.VCUDA_CORE: 50, names.VCUDA_MEMORY: 8},
        {names.ALIYUN_GPU_MEM: 2},
        {names.VOLCANO_GPU_MEMORY: 2048},
        {names.NVIDIA_GPU: 1, names.HAMI_GPUMEM: 2048},
    ],
    "whole cards": [{names.VCUDA_CORE: 100}, {names.VOLCANO_GPU_NUMBER: 1}, {names.NVIDIA_GPU: 1}],
}


@pytest.mark.parametrize("what", [CORES, MEMORY])
def test_each_way_out_of_an_amount_that_depends_on_the_card_is_counted(what: str) -> None:
    assert all(what in unknown(guess) for guess in GUESSES[what])
    every = [unknown(example) for example in EXAMPLES if what in unknown(example)]
    assert len(every) <= len(GUESSES[what]), "a dialect has a request that is not tried here"
    advice = budget_messages.uncountable("team/gpu", what).partition("request ")[2].split(", or ")
    assert len(advice) == 2
    for way in advice:
        assert [amounts for amounts in ADVISED[way] if what in unknown(amounts)] == []


@pytest.mark.parametrize("field", ["spec.resourceClaims", f"resources: {names.DEVICE_CLASS_PREFIX}gpu.nvidia.com"])
def test_the_way_out_of_devices_that_no_quota_counts_is_counted(field: str) -> None:
    """A node of a driver takes it as well, as the advice says."""
    told = budget_messages.uncounted_devices("team/gpu", field)
    advised = re.search(r"request whole cards by (\S+),", told)
    assert advised is not None
    needs = needs_of(read_pod(asking({advised[1]: 2}).read, DIALECTS))[1]
    assert charge(needs)[CARDS] == 2 and not uncounted(needs)
    assert may_go_to_driver(Demand(needs))


def unknown(amounts: Mapping[str, int]) -> frozenset[str]:
    return uncounted(needs_of(read_pod(asking(amounts).read, DIALECTS))[1])


# --- ResourceQuotas ---------------------------------------------------------------------------------------------------


@given(st.sampled_from(EXAMPLES), LEFT, LEFT)
def test_a_resource_quota_that_is_raised_by_what_is_missing_has_room(
    example: dict[str, int], hard: int, used: int
) -> None:
    cost = pod_cost(asking(example).read, DIALECTS.resources)
    keys = [f"requests.{resource}" for resource in example]
    short = exceeded_by([read(quota(dict.fromkeys(keys, str(hard)), dict.fromkeys(keys, str(used))))], cost)
    if short:
        more = missing(native_messages.exceeded_message(short, native_messages.units(DIALECTS)))
        raised = {key: str(hard + (Quantity.parse(more.get(key, "0")).as_int() or 0)) for key in keys}
        assert exceeded_by([read(quota(raised, dict.fromkeys(keys, str(used))))], cost) == []
