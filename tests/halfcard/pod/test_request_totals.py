from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names
from halfcard.pod.request_totals import pod_cost
from halfcard.pod.spec import INIT_CONTAINERS, Pod
from halfcard.quantity import Quantity
from tests.builders import WORDS, PodBuilder, amounts, pod

GPU: Final = frozenset(WORDS.values())


def cost(of: PodBuilder) -> dict[str, str]:
    short = {resource: word for word, resource in WORDS.items()}
    return {short[resource]: str(quantity) for resource, quantity in pod_cost(of.read, GPU).items()}


CHARGED: Final[dict[str, tuple[PodBuilder, dict[str, str]]]] = {
    "nothing for nothing": (pod(), {}),
    "nothing for what is no GPU": (pod().asks(cpu=4, memory_of_hosts="1Gi"), {}),
    "one container": (pod().asks(core=30, memory=20), {"core": "30", "memory": "20"}),
    "the sum of the containers": (
        pod().asks(core=30, memory=20).asks(core=50, memory=4),
        {"core": "80", "memory": "24"},
    ),
    "each resource for itself": (pod().asks(core=30).asks(memory=4), {"core": "30", "memory": "4"}),
    "an amount of 0 is charged 0": (pod().asks(core=0), {"core": "0"}),
    "a small init container fits in what the rest needs": (pod().asks(core=30).init(core=20), {"core": "30"}),
    "a large init container": (pod().asks(core=30).init(core=90), {"core": "90"}),
    "init containers one after the other": (pod().asks(core=30).init(core=40).init(core=60), {"core": "60"}),
    "an init container alone": (pod().asks().init(core=40), {"core": "40"}),
    "a sidecar beside the container": (pod().asks(core=30).sidecar(core=10), {"core": "40"}),
    "two sidecars": (pod().asks(core=30).sidecar(core=10).sidecar(core=5), {"core": "45"}),
    "a sidecar before a large init container": (pod().asks(core=30).sidecar(core=10).init(core=50), {"core": "60"}),
    "a sidecar after it": (pod().asks(core=30).init(core=50).sidecar(core=10), {"core": "50"}),
    "a sidecar after it that outgrows it": (pod().asks(core=30).init(core=50).sidecar(core=40), {"core": "70"}),
    "an init container between two sidecars": (
        pod().asks(core=5).sidecar(core=10).init(core=40).sidecar(core=20),
        {"core": "50"},
    ),
    "the peak of each resource may lie at another time": (
        pod().asks(core=30, memory=4).init(core=10, memory=20),
        {"core": "30", "memory": "20"},
    ),
    "overhead on top": (pod().asks(core=30).init(core=50).specified(overhead=amounts(core=7)), {"core": "57"}),
    "overhead alone": (pod().asks().specified(overhead=amounts(core=7, cpu="1")), {"core": "7"}),
    "requests count, not limits": (pod().container(limits=amounts(core=50), requests=amounts(core=30)), {"core": "30"}),
    "limits where requests are absent": (pod().container(limits=amounts(core=50), requests={"cpu": 1}), {"core": "50"}),
    "a request of 0 counts as 0": (pod().container(limits=amounts(core=50), requests=amounts(core=0)), {"core": "0"}),
    "every system's words": (pod().asks(gpu=1, gpumem=3000).asks(sgpu=2), {"gpu": "1", "gpumem": "3k", "sgpu": "2"}),
    "exactly, however it is written": (pod().asks(core="0.3").asks(core="300m"), {"core": "600m"}),
    "in bytes where they were never converted": (pod().asks(memory="5Gi"), {"memory": "5368709120"}),
}


@pytest.mark.parametrize(("charged", "expected"), CHARGED.values(), ids=CHARGED)
def test_a_pod_is_charged_what_the_api_server_charges(charged: PodBuilder, expected: dict[str, str]) -> None:
    assert cost(charged) == expected


@pytest.mark.parametrize("spec", [None, {}])
def test_a_pod_without_a_spec_or_an_empty_one_is_charged_nothing(spec: Mapping[str, Any] | None) -> None:
    assert pod_cost(Pod() if spec is None else PodBuilder({}, spec).read, GPU) == {}


def test_only_the_resources_in_question_are_charged() -> None:
    charged = pod_cost(pod().asks(core=30, memory=20).read, frozenset({names.VCUDA_CORE}))
    assert charged == {names.VCUDA_CORE: Quantity.of(30)}


# --- a law: the charge is the highest that is in use at any time ------------------------------------------------------


class Stage(NamedTuple):
    is_sidecar: bool
    words: dict[str, int]


words = st.dictionaries(st.sampled_from(["core", "memory", "gpu"]), st.integers(0, 300))
stages = st.lists(st.builds(Stage, st.booleans(), words), max_size=5)


def moments(init: list[Stage], apps: list[dict[str, int]]) -> Iterator[list[dict[str, int]]]:
    """The containers that run at each moment, from the first init container to the running pod."""
    staying: list[dict[str, int]] = []
    for stage in init:
        yield [*staying, stage.words]
        if stage.is_sidecar:
            staying.append(stage.words)
    yield [*staying, *apps]


def peak(word: str, timeline: list[list[dict[str, int]]]) -> int:
    return max(sum(each.get(word, 0) for each in running) for running in timeline)


@given(stages, st.lists(words, max_size=3), words)
def test_the_charge_is_the_most_that_runs_at_any_moment(
    init: list[Stage], apps: list[dict[str, int]], overhead: dict[str, int]
) -> None:
    charged = pod().specified(overhead=amounts(**overhead))
    for stage in init:
        restart: dict[str, Any] = {"restartPolicy": "Always"} if stage.is_sidecar else {}
        charged = charged.container(INIT_CONTAINERS, limits=amounts(**stage.words), **restart)
    for app in apps:
        charged = charged.asks(**app)
    timeline = list(moments(init, apps))
    named = {word for running in [*timeline, [overhead]] for each in running for word in each}
    found = {resource: quantity.as_int() for resource, quantity in pod_cost(charged.read, GPU).items()}
    assert found == {WORDS[word]: peak(word, timeline) + overhead.get(word, 0) for word in named}
