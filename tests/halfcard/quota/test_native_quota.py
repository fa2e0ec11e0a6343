"""Whether a ResourceQuota refuses a pod, and its message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.dialects.aliyun import Aliyun
from halfcard.dialects.vcuda import Vcuda
from halfcard.problems import MAX_MESSAGE_BYTES
from halfcard.quantity import Quantity
from halfcard.quota.native_messages import exceeded_message, in_words_of, never_counted, spelled, units
from halfcard.quota.native_quota import exceeded_by
from halfcard.quota.native_usage import Drift, drifts
from tests.builders import WORDS
from tests.builders import pod as building

from ..native import Object, quota, read, read_pod

CORE, MEMORY = names.VCUDA_CORE, names.VCUDA_MEMORY
CORES, MEMORIES = f"requests.{CORE}", f"requests.{MEMORY}"
UNITS: Final = units(Dialects())
GPUS: Final = Dialects().resources


def cost(**amounts: int) -> Mapping[str, Quantity]:
    named = {"core": CORE, "memory": MEMORY}
    return {named[key]: Quantity.of(amount) for key, amount in amounts.items()}


def said(asked: Mapping[str, Quantity], *quotas: Object) -> str:
    return exceeded_message(exceeded_by([read(each) for each in quotas], asked), UNITS)


def test_the_message_is_the_api_servers_and_names_what_is_missing() -> None:
    assert said(cost(core=30), quota({CORES: "100"}, {CORES: "80"})) == (
        f"exceeded quota: team-a/gpu, requested: {CORES}=30, used: {CORES}=80, limited: {CORES}=100 "
        "(10 more needed: 0.30 card asked, 0.20 card free)"
    )


def test_all_resources_that_are_short_are_named_and_no_other() -> None:
    short = quota({CORES: "100", MEMORIES: "40", "pods": "0"}, {CORES: "90", MEMORIES: "32", "pods": "3"})
    assert said(cost(core=30, memory=20), short) == (
        f"exceeded quota: team-a/gpu, requested: {CORES}=30,{MEMORIES}=20, used: {CORES}=90,{MEMORIES}=32, "
        f"limited: {CORES}=100,{MEMORIES}=40 "
        "(20 more needed: 0.30 card asked, 0.10 card free; 12 more needed: 5 GiB asked, 2 GiB free)"
    )
    assert "core" not in said(cost(core=10, memory=20), short)


def test_all_quotas_that_are_short_are_named_in_one_line() -> None:
    full = {name: quota({CORES: "0"}, {CORES: "0"}, name=name) for name in ("b", "a")}
    room = quota({CORES: "100"}, {CORES: "0"}, name="c")
    both = said(cost(core=30), full["b"], room, full["a"])
    assert [part.split(",")[0] for part in both.split(" | ")] == [
        "exceeded quota: team-a/a",
        "exceeded quota: team-a/b",
    ]
    many = said(cost(core=30), *[quota({CORES: "0"}, {CORES: "0"}, name=f"q{number}") for number in range(99)])
    assert len(many.encode()) <= MAX_MESSAGE_BYTES


def test_nothing_is_free_beyond_the_limit() -> None:
    assert "(60 more needed: 0.30 card asked, 0.00 card free)" in said(
        cost(core=30), quota({CORES: "50"}, {CORES: "80"})
    )


KNOWN: Final[dict[str, tuple[Object, bool]]] = {
    "full": (quota({CORES: "100"}, {CORES: "100"}), True),
    "full to the last": (quota({CORES: "100"}, {CORES: "70"}), False),
    "one too many": (quota({CORES: "100"}, {CORES: "71"}), True),
    "by another spelling": (quota({CORES: "0.1k"}, {CORES: "80"}, in_force={CORES: "100"}), True),
    "without a status": ({"metadata": {"name": "gpu"}, "spec": {"hard": {CORES: "0"}}}, False),
    "not counted yet": (quota({CORES: "0"}), False),
    "raised, and not in force yet": (quota({CORES: "200"}, {CORES: "100"}, in_force={CORES: "100"}), False),
    "lowered, and not in force yet": (quota({CORES: "0"}, {CORES: "10"}, in_force={CORES: "100"}), False),
    "taken away, and not in force yet": (quota({}, {CORES: "100"}, in_force={CORES: "100"}), False),
    "an unreadable amount": (quota({CORES: "0"}, {CORES: "1e999"}), False),
    "keys that are never counted": (quota({f"limits.{CORE}": "0", CORE: "0"}), False),
    "something else": (quota({"pods": "0"}, {"pods": "9"}), False),
}


@pytest.mark.parametrize(("item", "short"), KNOWN.values(), ids=KNOWN)
def test_a_quota_is_exceeded_only_if_all_amounts_are_known(item: Object, *, short: bool) -> None:
    assert bool(exceeded_by([read(item)], cost(core=30))) is short


def test_a_pod_without_a_request_passes_an_exceeded_quota() -> None:
    assert exceeded_by([read(quota({CORES: "50"}, {CORES: "80"}))], cost(core=0)) == []


amounts = st.integers(0, 500)


@given(hard=amounts, used=amounts, asked=amounts)
def test_a_quota_is_exceeded_exactly_if_the_sum_is_more(hard: int, used: int, asked: int) -> None:
    item = read(quota({CORES: str(hard)}, {CORES: str(used)}))
    assert bool(exceeded_by([item], cost(core=asked))) == (asked > 0 and used + asked > hard)


FREE: Final = {
    names.TUYA_SGPU: (3, "1.50 card"),
    names.ALIYUN_GPU_MEM: (3, "3 GiB"),
    names.VOLCANO_GPU_MEMORY: (512, "0.5 GiB"),
    names.VOLCANO_GPU_NUMBER: (1, "1 card"),
    names.VCUDA_CORE: (50, "0.50 card"),
    names.NVIDIA_GPU: (2, "2 cards"),
    names.NVIDIA_GPU_SHARED: (2, "2 time slices"),
    names.HAMI_GPUMEM: (2048, "2 GiB"),
    names.HAMI_GPUCORES: (50, "0.50 card"),
    names.HAMI_GPUMEM_PERCENTAGE: (50, "50"),
    MEMORY: (1, "0.25 GiB"),
}


@pytest.mark.parametrize("resource", sorted({*WORDS.values()} - {CORE}))
def test_amounts_of_each_dialect_are_given_in_cards_and_gib(resource: str) -> None:
    number, words = FREE[resource.replace(names.TUYA + "/v", names.TENCENT + "/v")]
    key = f"requests.{resource}"
    short = said({resource: Quantity.of(number)}, quota({key: "0"}, {key: "0"}))
    assert f"({number} more needed: {words} asked, " in short


def test_units_follow_the_settings() -> None:
    own = units(Dialects((Vcuda("acme", "acme.example", memory_alone=False), Aliyun(unit_mib=1))))
    assert spelled(own["acme.example/vcuda-memory"], Quantity.of(4)) == "1 GiB"
    assert spelled(own[names.ALIYUN_GPU_MEM], Quantity.of(512)) == "0.5 GiB"


def test_a_charge_is_converted_to_every_dialect() -> None:
    asked = in_words_of({"cores": 30, "memory": 5 * 1024, "shares": 1}, UNITS)
    assert {CORE: "30", MEMORY: "20", names.ALIYUN_GPU_MEM: "5", names.VOLCANO_GPU_MEMORY: "5120"}.items() <= {
        key: str(amount) for key, amount in asked.items()
    }.items()
    assert names.NVIDIA_GPU not in asked
    assert in_words_of({"cores": 200, "cards": 2}, UNITS)[names.NVIDIA_GPU] == Quantity.of(2)


UNCOUNTED: Final[dict[str, tuple[Object, list[str]]]] = {
    "limits alone": (quota({f"limits.{CORE}": "50"}), [f"limits.{CORE}"]),
    "a bare name": (quota({CORE: "50"}), [CORE]),
    "both": (quota({CORE: "50", f"limits.{CORE}": "50"}), [f"limits.{CORE}", CORE]),
    "with its twin": (quota({f"limits.{CORE}": "50", CORES: "50"}), []),
    "the twin of another": (quota({f"limits.{CORE}": "50", MEMORIES: "50"}), [f"limits.{CORE}"]),
    "something else": (quota({"limits.cpu": "50", "limits.example.com/thing": "1"}), []),
}


@pytest.mark.parametrize(("item", "keys"), UNCOUNTED.values(), ids=UNCOUNTED)
def test_keys_that_are_never_counted_are_found(item: Object, keys: list[str]) -> None:
    found = read(item)
    assert found.uncounted(GPUS) == sorted(keys)
    assert bool(never_counted(found, GPUS)) is bool(keys)


@pytest.mark.parametrize("key", [CORES, f"limits.{CORE}", CORE])
def test_a_quota_that_names_gpus_is_recognised(key: str) -> None:
    assert read(quota({key: "1", "pods": "1"})).names(GPUS)
    assert not read(quota({"limits.cpu": "1", "requests.example.com/thing": "1"})).names(GPUS)


def test_the_author_of_a_quota_gets_the_command_that_makes_it_count() -> None:
    assert never_counted(read(quota({f"limits.{CORE}": "50"})), GPUS) == (
        f"Kubernetes accepts limits.{CORE}=50 and never counts it, so it limits nothing: "
        "`halfcard quota repair team-a` adds what counts"
    )


def running(core: int, **fields: Any) -> Any:
    return read_pod(**building("p").asks(core=core).manifest["spec"], **fields)


def test_a_drift_is_a_difference_to_the_sum_of_the_pods() -> None:
    item = read(quota({CORES: "100", MEMORIES: "10"}, {CORES: "80", MEMORIES: "0"}))
    pods = [running(30), running(20), running(100, status={"phase": "Succeeded"})]
    assert drifts(item, pods, GPUS, 0) == [Drift(CORES, "80", "50")]
    assert drifts(item, [*pods, running(30)], GPUS, 0) == []


def test_a_quota_with_scopes_drifts_by_the_pods_that_it_counts() -> None:
    item = read(quota({CORES: "100"}, {CORES: "30"}, scopes=["Terminating"]))
    assert drifts(item, [running(30, activeDeadlineSeconds=9), running(20)], GPUS, 0) == []


def test_a_quota_that_is_not_counted_yet_does_not_drift() -> None:
    assert drifts(read(quota({CORES: "100"}, {CORES: "0"}, in_force={CORES: "50"})), [running(30)], GPUS, 0) == []
