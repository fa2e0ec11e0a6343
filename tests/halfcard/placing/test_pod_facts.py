from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halfcard import names
from halfcard.claims import ContainerStage
from halfcard.placing.node_usage import usage_of_pods
from halfcard.placing.pod_facts import read_facts
from halfcard.pod.card_preferences import CardPreferences
from halfcard.pod.stored_pod import StoredPod
from tests.builders import WORDS, PodBuilder, amounts, pod

from .examples import DIALECTS, facts, node


def test_the_facts_of_a_pod() -> None:
    asking = pod("web").asks(core=30, memory=20, cpu="1500m").init(core=100).sidecar(core=10, memory=1)
    seen = facts(asking.container(requests=amounts(memory_of_hosts="1Gi")), "u1", {names.ASK_MODEL: "T4"})
    assert (seen.uid, seen.title, seen.node, seen.is_over, seen.trouble) == ("u1", "team/web", "n1", False, "")
    assert [need.stage for need in seen.demand.needs] == [
        ContainerStage.APP,
        ContainerStage.SIDECAR,
        ContainerStage.INIT,
    ]
    assert seen.containers == ("containers-0", "initContainers-1", "initContainers-0")
    assert seen.demand.wanted == CardPreferences(models=("t4",))
    assert seen.demand.cpu_milli == 1500
    assert seen.asks == {names.VCUDA_CORE: 100, names.VCUDA_MEMORY: 21}
    assert seen.owned == {} and seen.asks_for_cards


def test_cpu_and_memory_are_rounded_up() -> None:
    seen = facts(pod().container(requests={"cpu": "100u", "memory": "1"}))
    assert (seen.demand.cpu_milli, seen.demand.memory_mib) == (1, 1)
    assert not seen.asks_for_cards


def test_only_owned_annotations_are_stored() -> None:
    seen = facts(pod().asks(gpu=1), "u", {names.FENCE: "a", "tencent.com/gpu-assigned": "false", "team": "x" * 1000})
    assert seen.owned == {names.FENCE: "a", "tencent.com/gpu-assigned": "false"}


def test_pods_with_equal_needs_share_one_copy() -> None:
    assert facts(pod().asks(gpu=1), "a").demand.needs is facts(pod().asks(gpu=1), "b").demand.needs


TROUBLE: Final[dict[str, tuple[PodBuilder, str]]] = {
    "a whole number too large": (pod().asks(gpu="10E"), 'limits["nvidia.com/gpu"]: got "10E"'),
    "less than nothing": (pod().asks(core=-1, memory=1), 'limits["tencent.com/vcuda-core"]: got "-1"'),
    "beyond 64 bits": (pod().asks(gpu=str(2**63)), 'got "9223372036854775808"'),
    "beyond all numbers": (pod().asks(gpu="1e400"), 'got "1e400"'),
    "no number": (pod().asks(gpu_mem="three"), 'got "three"'),
    "a card and a half": (pod().asks(core=150), 'got "150"'),
    "a share that names no memory": (pod().asks(core=30), "vcuda-memory"),
    "two systems in one container": (pod().asks(core=30, memory=2, gpu=1), "nvidia and tencent"),
    "two systems that no node serves": (pod().asks(gpu=1).asks(gpumem=3000), "hami and nvidia"),
    "in the second container": (pod().asks().init(gpu="-1"), "spec.initContainers[0].resources.limits"),
}


@pytest.mark.parametrize(("asking", "said"), TROUBLE.values(), ids=TROUBLE)
def test_problems_of_a_pods_claims_are_reported(asking: PodBuilder, said: str) -> None:
    seen = facts(asking)
    assert said in seen.trouble.replace("tencent and nvidia", "nvidia and tencent")
    assert seen.asks_for_cards


def test_an_invalid_bound_pod_counts_by_its_readable_requests() -> None:
    """A share without a memory limit can use all of it: no other pod may share its card."""
    seen = facts(pod().asks(core=30))
    assert seen.trouble
    assert [left.mib for left in usage_of_pods(node(1), [seen.bound()]).room.left] == [0]


@pytest.mark.parametrize("words", [{"core": "10E", "memory": 1}, {"gpu": 2**31 - 1}, {"memory": 5}, {"core": -5}])
def test_an_unreadable_bound_pod_affects_only_itself(words: dict[str, Any]) -> None:
    seen = facts(pod().asks(**words))
    room = usage_of_pods(node(2), [seen.bound()]).room
    assert room.counted.idle >= 1
    assert all(0 <= amount < 2**31 for amount in seen.asks.values())


def test_an_unreadable_overhead_does_not_count() -> None:
    asking = pod().asks(gpu=1, cpu="1").specified(overhead={"nvidia.com/gpu": "x", "cpu": "y"})
    assert facts(asking).asks == {} and facts(asking).demand.cpu_milli == 0


# --- a law: any pod that can be decoded has facts ---------------------------------------------------------------------

QUANTITIES: Final = st.sampled_from(
    ["10E", "-1", str(2**63), "1e400", "", "0", "1", "0.3", "5Gi", "100", "1e-400", "²", "9" * 500, " 7 ", "+1", "1k"]
)
AMOUNTS: Final = st.dictionaries(
    st.sampled_from([*WORDS.values(), "cpu", "memory", "x"]),
    QUANTITIES | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    max_size=4,
)
NAMES: Final = st.sampled_from(["", "a", "b"])
CONTAINERS: Final = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": NAMES,
            "restartPolicy": st.sampled_from(["Always", "", None]),
            "resources": st.none()
            | st.fixed_dictionaries({}, optional={"limits": AMOUNTS | st.none(), "requests": AMOUNTS | st.none()}),
        },
    ),
    max_size=3,
)
PODS: Final = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "name": NAMES | st.none(),
                "namespace": NAMES | st.none(),
                "uid": NAMES,
                "creationTimestamp": st.none() | st.text(max_size=5),
                "annotations": st.none()
                | st.dictionaries(
                    st.sampled_from(
                        [names.PLACEMENT, names.ASK_POLICY, names.HAMI_USE_UUID, "tencent.com/predicate-node"]
                    ),
                    st.text(max_size=20),
                ),
            },
        ),
        "spec": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "containers": CONTAINERS | st.none(),
                "initContainers": CONTAINERS | st.none(),
                "overhead": AMOUNTS | st.none(),
                "nodeName": st.sampled_from(["n1", "", None]),
                "priority": st.integers(-(2**31), 2**31) | st.none(),
            },
        ),
        "status": st.none() | st.fixed_dictionaries({"phase": st.sampled_from(["Running", "Failed", ""])}),
    },
)


@settings(max_examples=250)
@given(PODS)
def test_any_pod_has_facts_and_can_be_counted_on_a_node(manifest: dict[str, Any]) -> None:
    seen = read_facts(msgspec.json.decode(_json(manifest), type=StoredPod), DIALECTS)
    assert len(seen.containers) == len(seen.demand.needs)
    assert not seen.trouble or seen.trouble.isprintable()
    holding = usage_of_pods(node(2), [seen.bound()])
    assert all(left.cores >= 0 and left.mib >= 0 and left.parts >= 0 for left in holding.room.left)
    assert all(doubt.isprintable() for doubt in holding.doubts)


def _json(manifest: dict[str, Any]) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(_spelled(manifest)))


def _spelled(value: Any) -> Any:
    """Numbers beyond 64 bits as texts, as the API server sends them."""
    if isinstance(value, dict):
        return {key: _spelled(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_spelled(each) for each in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return str(value)
    return value
