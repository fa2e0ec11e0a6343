from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.gpus.interface import Process
from deviceplugin.usage.usage_report import NodeUsageReport, StartedPod, UnaccountedProcess, usage_of
from halfcard.cards import Node
from halfcard.claims import WHOLE_CARD, ContainerStage
from halfcard.placing.card_usage import CardMode
from halfcard.placing.demand import Demand
from halfcard.placing.node_usage import usage_of_pods
from halfcard.placing.pod_facts import PodFacts
from tests.builders import PodBuilder, pod
from tests.halfcard.placing.examples import Asking, askings, nodes

from ..usages import NODE, SEED, T4_MIB, id_of, load, owner, tenant, tensorflow, usage

SHARE: Final = {"core": 30, "memory": 20}
SHARE_MIB: Final = 20 * 256


# --- what containers have


def test_a_share_has_the_granted_amounts_of_its_card() -> None:
    seen = usage([SEED])
    (container,) = seen.containers
    (part,) = container.cards
    assert (container.title, container.asked_mib) == ("default/vcuda/tensorflow", 1024)
    assert (part.card, part.uuid, part.cores, part.memory_mib, part.total_mib) == (0, "GPU-0", 10, 1024, T4_MIB)
    assert [(card.mode, card.cores, card.memory_mib) for card in seen.cards] == [
        (CardMode.SHARED, 10, 1024),
        (CardMode.FREE, 0, 0),
    ]


GIVEN: Final = {
    "a whole card": ({"core": 100}, [(100, T4_MIB)], T4_MIB),
    "two whole cards, and memory in units": ({"core": 200, "memory": 128}, [(100, T4_MIB)] * 2, 32768),
    "memory alone": ({"gpu_mem": 3}, [(0, 3072)], 3072),
    "a half of each of two cards": ({"sgpu": 2}, [(50, T4_MIB // 2)] * 2, T4_MIB // 2 * 2),
}


@pytest.mark.parametrize(("words", "parts", "asked"), GIVEN.values(), ids=GIVEN.keys())
def test_every_kind_of_request_is_converted_to_cores_and_memory(
    words: dict[str, int], parts: list[tuple[int, int]], asked: int
) -> None:
    (container,) = usage([tenant(tensorflow(**words))]).containers
    assert [(part.cores, part.memory_mib) for part in container.cards] == parts
    assert container.asked_mib == asked


def test_the_time_slices_of_a_container_on_one_card_are_one_part() -> None:
    sold = replace(NODE, cards=tuple(replace(card, replicas=4) for card in NODE.cards[:1]), slices="nvidia.com/gpu")
    (container,) = usage([tenant(tensorflow(gpu=2))], node=sold).containers
    assert [(part.cores, part.memory_mib) for part in container.cards] == [(50, T4_MIB // 2)]


# --- who of a pod has them now

STAGED: Final = (
    pod()
    .container("initContainers", name="early", limits={"tencent.com/vcuda-core": 30, "tencent.com/vcuda-memory": 20})
    .container("initContainers", name="late", limits={"tencent.com/vcuda-core": 30, "tencent.com/vcuda-memory": 20})
    .container(name="app", limits={"tencent.com/vcuda-core": 30, "tencent.com/vcuda-memory": 20})
)
PHASES: Final[dict[str, tuple[list[str], list[str], list[str]]]] = {
    "nothing has started": ([], [], ["app"]),
    "the first init container runs": ([], ["early"], ["early"]),
    "the second init container runs": ([], ["early", "late"], ["late"]),
    "the app runs": (["app"], ["early", "late"], ["app"]),
}


@pytest.mark.parametrize(("apps", "inits", "having"), PHASES.values(), ids=PHASES.keys())
def test_a_pods_cards_are_listed_with_its_running_containers(
    apps: list[str], inits: list[str], having: list[str]
) -> None:
    seen = usage([tenant(STAGED, apps=apps, inits=inits)])
    assert [container.container for container in seen.containers] == having
    assert seen.cards[0].cores == 30


def test_a_sidecar_keeps_its_cards_while_later_containers_run() -> None:
    limits = {"tencent.com/vcuda-core": 10, "tencent.com/vcuda-memory": 4}
    asking = (
        pod()
        .container("initContainers", name="side", limits=limits, restartPolicy="Always")
        .container("initContainers", name="init", limits=limits)
        .container(name="app", limits=limits)
    )
    early, late = tenant(asking, inits=["side", "init"]), tenant(asking, inits=["side", "init"], apps=["app"])
    assert [each.container for each in usage([early]).containers] == ["side", "init"]
    assert sorted(each.container for each in usage([late]).containers) == ["app", "side"]


# --- whose processes


def test_a_process_counts_for_the_container_it_runs_in() -> None:
    tenants = [SEED, tenant(tensorflow(**SHARE), "other", apps=["tensorflow"])]
    loads = {"GPU-0": load(Process(7, 300, 5), Process(8, 200, 4), Process(9, 1000, 20))}
    seen = usage(tenants, loads, {7: owner("vcuda"), 8: owner("vcuda"), 9: owner("other")})
    used = {each.pod: (part.used_mib, part.used_cores, part.pids) for each in seen.containers for part in each.cards}
    assert used == {"vcuda": (500, 9, (7, 8)), "other": (1000, 20, (9,))}
    assert (seen.cards[0].used_mib, seen.cards[0].used_cores, seen.cards[0].strangers) == (1500, 29, ())


def test_a_new_containers_process_counts_by_its_pod_if_that_is_certain() -> None:
    """Its id is not in the pod's status yet."""
    fresh = owner("vcuda")._replace(container=id_of("fresh"))
    (container,) = usage([tenant(tensorflow(**SHARE))], {"GPU-0": load(Process(7, 300, 5))}, {7: fresh}).containers
    assert container.cards[0].pids == (7,)


def test_a_process_of_an_unknown_container_is_unaccounted_if_two_are_possible() -> None:
    limits = {"tencent.com/vcuda-core": 10, "tencent.com/vcuda-memory": 4}
    two = pod().container(name="a", limits=limits).container(name="b", limits=limits)
    fresh = owner("vcuda")._replace(container=id_of("fresh"))
    layout_on_one = usage([tenant(two)], {"GPU-0": load(Process(7, 300, 5))}, {7: fresh})
    assert [part.card for each in layout_on_one.containers for part in each.cards] == [0, 0]
    assert layout_on_one.cards[0].strangers == (UnaccountedProcess(7, 300, "default/vcuda", "uid-vcuda"),)


STRANGERS: Final = {
    "a process of the node": (None, "", ""),
    "a pod that asks for no card": (owner("nobody"), "uid-nobody", "uid-nobody"),
    "a pod that has another card": (owner("yonder"), "default/yonder", "uid-yonder"),
    "a container beside the one with cards": (owner("vcuda", "beside"), "default/vcuda", "uid-vcuda"),
}


@pytest.mark.parametrize(("whose", "title", "uid"), STRANGERS.values(), ids=STRANGERS.keys())
def test_a_process_on_a_card_that_its_pod_was_not_granted_is_unaccounted(whose: object, title: str, uid: str) -> None:
    tenants = [
        tenant(tensorflow(core=10, memory=4), apps=["tensorflow", "beside"]),
        tenant(tensorflow(core=100), "yonder", apps=["tensorflow"]),
    ]
    owners = {} if whose is None else {7: whose}
    seen = usage(tenants, {"GPU-0": load(Process(7, 300, 5))}, owners)  # type: ignore[arg-type]  # of the table
    assert seen.cards[0].strangers == (UnaccountedProcess(7, 300, title, uid),)
    assert seen.cards[0].used_mib == 300
    assert [part.pids for each in seen.containers for part in each.cards] == [(), ()]


def test_the_id_of_a_container_has_priority_over_the_uid_in_its_path() -> None:
    """A pod from a file has kubelet's hash there."""
    hashed = owner("vcuda")._replace(pod="9c6f1d0f2b7a4e55a1c2d3e4f5061728")
    (container,) = usage([SEED], {"GPU-0": load(Process(7, 300, 5))}, {7: hashed}).containers
    assert container.cards[0].pids == (7,)


def test_the_usage_of_a_card_is_unknown_if_the_driver_does_not_report_it() -> None:
    seen = usage([SEED], {})
    assert [(card.used_mib, card.used_cores) for card in seen.cards] == [(None, None)] * 2


# --- the law


def facts(asking: Asking, name: str) -> PodFacts:
    """The facts of a pod with these needs."""
    plain = SEED.facts
    containers = tuple(f"c{number}" for number in range(len(asking.demand.needs)))
    demand = Demand(asking.demand.needs)
    return replace(plain, uid=f"uid-{name}", name=name, created=name, demand=demand, containers=containers)


@given(nodes(), st.lists(askings(most=3), max_size=4), st.data())
def test_granted_shares_never_exceed_a_card(node: Node, asked: list[Asking], data: st.DataObject) -> None:
    pods = [facts(asking, f"p{number}") for number, asking in enumerate(asked)]
    while usage_of_pods(node, [each.bound() for each in pods]).doubts:
        pods.pop()  # it does not fit
    holding = usage_of_pods(node, [each.bound() for each in pods])
    seen = usage_of(node, holding, [data.draw(phases(each)) for each in pods], {}, {})
    for card in seen.cards:
        parts = [part for each in seen.containers for part in each.cards if part.card == card.index]
        assert sum(part.cores for part in parts) <= card.cores <= WHOLE_CARD
        assert sum(part.memory_mib for part in parts) <= card.memory_mib <= (card.total_mib or 0)


@st.composite
def phases(draw: st.DrawFn, of: PodFacts) -> StartedPod:
    """Any phase in the life of the pod."""
    early = [
        name for name, need in zip(of.containers, of.demand.needs, strict=True) if need.stage is not ContainerStage.APP
    ]
    apps = [name for name in of.containers if name not in early]
    begun = draw(st.integers(0, len(early) + len(apps)))
    inits, started = early[:begun], apps[: max(0, begun - len(early))]
    return StartedPod(of, {name: id_of(name) for name in started}, {name: id_of(name) for name in inits})


def test_a_usage_without_pods_and_cards_is_empty() -> None:
    assert usage([], node=Node("gpu1")) == NodeUsageReport("gpu1", is_made_up=False, cards=(), containers=())


def test_a_pod_without_cards_has_no_usage() -> None:
    huge: PodBuilder = tensorflow(core=800)
    assert usage([tenant(huge)]).containers == ()
