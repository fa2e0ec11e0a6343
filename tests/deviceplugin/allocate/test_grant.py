"""The grant of each container, whichever ids kubelet reuses: its recorded cards, and at most its pod's share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deviceplugin.allocate.container_identity import StartingContainer, pods_holding
from deviceplugin.allocate.grant import Grant, PodOnCards, grant_of
from deviceplugin.inject.card_files import CardFiles
from deviceplugin.kubelet.messages import RefusedError
from halfcard import names
from halfcard.cards import Node
from halfcard.placing.card_usage import CardMode
from halfcard.placing.layouts import Layout, best, peaks
from halfcard.placing.node_usage import Share
from halfcard.placing.records import name_of
from halfcard.placing.room import empty_room
from tests.builders import PodBuilder, pod
from tests.halfcard.placing.examples import CARD_MIB, DIALECTS, facts, node, stored

from ..device_manager import DeviceManager

BY_NAME: Final = DIALECTS.by_name
FILES: Final = CardFiles(Path("/nowhere"), list, are_made_up=True)
WITHOUT_IDS: Final = frozenset().union(*[dialect.without_ids for dialect in DIALECTS.table])
RESOURCES: Final = (DIALECTS.resources - WITHOUT_IDS) | {names.SLOT}


def placed(asks: PodBuilder, layout: Layout, on: Node, annotations: Mapping[str, str] = {}) -> PodOnCards:
    seen = facts(asks)
    uses = peaks(empty_room(on), seen.demand, layout) or {}
    return PodOnCards(seen, annotations, on, Share(layout, uses, recorded=True))


def granted(case: PodOnCards, resource: str, ids: frozenset[str], manager: DeviceManager) -> Grant:
    (who,) = pods_holding(manager.held(), resource, ids) or (StartingContainer("team", "p", resource, ids),)
    return grant_of(case, who, BY_NAME, FILES)


# --- laws -------------------------------------------------------------------------------------------------------------

WORDS: Final[dict[str, st.SearchStrategy[dict[str, Any]]]] = {
    "tencent": st.fixed_dictionaries({"core": st.sampled_from([10, 20, 30]), "memory": st.sampled_from([8, 16])}),
    "tencent whole": st.fixed_dictionaries({"core": st.sampled_from([100, 200])}),
    "tuya": st.fixed_dictionaries({"sgpu": st.integers(1, 3)}),
    "tuya-vcuda": st.fixed_dictionaries({"tuya_memory": st.sampled_from([8, 16])}),
    "aliyun": st.fixed_dictionaries({"gpu_mem": st.sampled_from([1, 2, 4])}),
    "volcano": st.fixed_dictionaries({"gpu_number": st.integers(1, 2)}),
    "nvidia": st.fixed_dictionaries({"gpu": st.integers(1, 2)}),
    "slices": st.fixed_dictionaries({"gpu_shared": st.integers(1, 2)}),
    "hami": st.fixed_dictionaries({"gpu": st.integers(1, 2), "gpumem": st.sampled_from([1000, 2000])}),
}


@st.composite
def pods(draw: st.DrawFn) -> PodBuilder:
    words = WORDS[draw(st.sampled_from(sorted(WORDS)))]
    found = pod()
    for stage in draw(st.permutations(["init"] * draw(st.integers(0, 3)) + ["sidecar"] * draw(st.integers(0, 2)))):
        found = found.init(**draw(words)) if stage == "init" else found.sidecar(**draw(words))
    for _ in range(draw(st.integers(0, 3))):
        found = found.asks(**draw(words))
    return found


NODES: Final = st.builds(node, st.integers(1, 4), replicas=st.integers(1, 3), slices=st.just(names.NVIDIA_GPU_SHARED))


def place(asks: PodBuilder, on: Node, spread: int) -> PodOnCards:
    """Places a pod; the sign of the rate makes it pack or spread."""
    demand = facts(asks).demand
    found = best(empty_room(on), demand, lambda room: spread * sum(left.mode is CardMode.FREE for left in room.left))
    assume(demand.needs and found is not None)
    assert found is not None
    return placed(asks, found.layout, on)


def check(case: PodOnCards, container: str, given_to_it: Grant) -> None:
    """Checks that a grant agrees with the container's record."""
    where = dict(zip(case.facts.containers, case.share.layout, strict=True))
    assert {card.uuid for card in given_to_it.cards} == {case.node.cards[at].uuid for at in where[container]}
    assert container in given_to_it.limits.containers
    uses = case.uses
    claim = dict(zip(case.facts.containers, case.facts.demand.needs, strict=True))[container].claim
    for card, limit in zip(given_to_it.cards, given_to_it.limits.cards, strict=True):
        use = uses[name_of(card)]
        if use.mode is CardMode.SHARED:
            assert (claim.cores_pct or 0) <= (limit.cores_pct or 0) <= use.cores or limit.cores_pct is None
            assert limit.memory_mib is None or (claim.memory_mib or 0) <= limit.memory_mib <= use.mib
        elif use.mode is CardMode.HALVES:
            assert limit.memory_mib == CARD_MIB // 2


@settings(max_examples=300)
@given(asks=pods(), on=NODES, spread=st.sampled_from([1, -1]), seed=st.integers(0, 2**16))
def test_a_container_gets_its_recorded_cards_and_at_most_the_share_of_its_pod(
    asks: PodBuilder, on: Node, spread: int, seed: int
) -> None:
    case, manager = place(asks, on, spread), DeviceManager(seed, RESOURCES)
    for (container, resource), ids in manager.admit(stored(asks)).items():
        check(case, container, granted(case, resource, ids, manager))


# --- by hand ----------------------------------------------------------------------------------------------------------


def ids_of(count: int, first: int = 0) -> frozenset[str]:
    return frozenset(f"hc-{number}" for number in range(first, first + count))


def test_an_init_container_that_may_be_one_of_two_gets_the_larger_limits() -> None:
    asks = pod().init(core=30, memory=8).asks(core=30, memory=20)
    case, manager = placed(asks, ((1,), (1,)), node()), DeviceManager(0, RESOURCES)
    given_ids = manager.admit(stored(asks))
    found = granted(case, names.VCUDA_CORE, given_ids["initContainers-0", names.VCUDA_CORE], manager)
    assert found.limits.containers == ("initContainers-0", "containers-0")
    assert [(each.uuid, each.cores_pct, each.memory_mib) for each in found.limits.cards] == [("GPU-1", 30, 5120)]
    memory = granted(case, names.VCUDA_MEMORY, given_ids["initContainers-0", names.VCUDA_MEMORY], manager)
    assert memory.limits.containers == ("initContainers-0",)
    assert memory.limits.cards[0].memory_mib == 2048


def test_indistinguishable_containers_with_different_cards_are_refused() -> None:
    asks = pod().init(gpu=2).init(gpu=1).asks(gpu=1).asks(gpu=1)
    layout: Layout = ((0,), (1,), (0, 1), (0,))
    case = placed(asks, layout, node())
    who = StartingContainer("team", "p", names.NVIDIA_GPU, ids_of(1), listed="containers-1")
    with pytest.raises(RefusedError, match="which of initContainers-1, containers-1 starts, and their cards differ"):
        grant_of(case, who, BY_NAME, FILES)


def test_a_container_that_requests_an_unknown_resource_is_refused() -> None:
    asks = pod().container(limits={"example.com/gpu": 1})
    case = placed(asks, (), node())
    with pytest.raises(RefusedError, match="containers-0 requests no card under a resource name that this node knows"):
        grant_of(case, StartingContainer("team", "p", "example.com/gpu", ids_of(1), "containers-0"), BY_NAME, FILES)


VARIABLES: Final[dict[str, tuple[dict[str, Any], Layout, dict[str, str]]]] = {
    "tencent": (
        {"core": 30, "memory": 20},
        ((1,),),
        {
            names.VISIBLE_DEVICES: "GPU-1",
            "HALFCARD_CORES_PCT": "30",
            "HALFCARD_CORES_LIMIT_PCT": "50",
            "HALFCARD_MEMORY_MIB": "5120",
            "CUDA_DEVICE_MEMORY_LIMIT_0": "5120m",
            "CUDA_DEVICE_SM_LIMIT": "50",
        },
    ),
    "tencent whole": ({"core": 200}, ((0, 2),), {names.VISIBLE_DEVICES: "GPU-0,GPU-2", "HALFCARD_MEMORY_MIB": ","}),
    "tuya": (
        {"sgpu": 2},
        ((0, 1),),
        {"HALFCARD_MEMORY_MIB": "11008,11008", "CUDA_DEVICE_MEMORY_LIMIT_1": "11008m", "HALFCARD_CORES_PCT": ","},
    ),
    "gpushare": (
        {"gpu_mem": 3},
        ((2,),),
        {
            "ALIYUN_COM_GPU_MEM_IDX": "2",
            "ALIYUN_COM_GPU_MEM_POD": "3",
            "ALIYUN_COM_GPU_MEM_CONTAINER": "3",
            "ALIYUN_COM_GPU_MEM_DEV": "21",
            "CUDA_DEVICE_MEMORY_LIMIT_0": "3072m",
        },
    ),
    "volcano": (
        {"gpu_memory": 2048, names.SLOT: 1},
        ((0,),),
        {"VOLCANO_GPU_ALLOCATED": "2048", "VOLCANO_GPU_MEMORY_TOTAL": "22016", "CUDA_DEVICE_MEMORY_LIMIT_0": "2048m"},
    ),
    "hami": (
        {"gpu": 2, "gpumem": 3000, "gpucores": 30},
        ((0, 1),),
        {"CUDA_DEVICE_MEMORY_LIMIT_0": "3000m", "CUDA_DEVICE_MEMORY_LIMIT_1": "3000m", "CUDA_DEVICE_SM_LIMIT": "30"},
    ),
    "nvidia": ({"gpu": 1}, ((3,),), {names.VISIBLE_DEVICES: "GPU-3", "HALFCARD_LIMITS": "/etc/halfcard/limits.json"}),
}


@pytest.mark.parametrize(("words", "layout", "wanted"), VARIABLES.values(), ids=VARIABLES)
def test_each_system_gets_its_environment_variables(
    words: dict[str, Any], layout: Layout, wanted: dict[str, str]
) -> None:
    asks = pod().asks(**words)
    case = placed(asks, layout, node(), {"tencent.com/vcuda-core-limit": "50"})
    manager = DeviceManager(0, RESOURCES)
    ((_, resource), ids), *_ = manager.admit(stored(asks)).items()
    found = granted(case, resource, ids, manager).variables
    assert wanted.items() <= found.items()


def test_whole_cards_have_no_limits() -> None:
    asks, manager = pod().asks(core=100), DeviceManager(0, RESOURCES)
    case = placed(asks, ((0,),), node())
    (ids,) = manager.admit(stored(asks)).values()
    found = granted(case, names.VCUDA_CORE, ids, manager)
    assert not [key for key in found.variables if key.startswith("CUDA_")]
    assert found.limits.cards[0].cores_pct is None and found.limits.cards[0].memory_mib is None


def test_two_slices_of_one_card_are_one_card() -> None:
    on = node(1, replicas=4, slices=names.NVIDIA_GPU_SHARED)
    asks, manager = pod().asks(gpu_shared=2), DeviceManager(0, RESOURCES)
    case = placed(asks, ((0, 0),), on)
    (ids,) = manager.admit(stored(asks)).values()
    assert granted(case, names.NVIDIA_GPU_SHARED, ids, manager).variables[names.VISIBLE_DEVICES] == "GPU-0"
