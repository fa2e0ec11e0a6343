"""Pods that were bound without the extender: the agent chooses their cards and writes their records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from devcluster.objects import Object
from halfcard import names
from tests.builders import PodBuilder, pod
from tests.cluster.pods import wait_for_phase
from tests.cluster.site import NO_SCHEDULER, cards_of

from .gpu_cluster import GpuCluster

CONTAINER: Final = "containers-0"


def wait_recorded(gpus: GpuCluster, space: str, name: str) -> Object:
    """Returns the pod when it runs on the cards of its record, and the extender counts that record."""
    running: Object = wait_for_phase(gpus.cluster, space, name, "Running")
    assert gpus.report(running).cards == tuple(cards_of(running)[CONTAINER])
    gpus.cluster.wait_until(lambda: name in pod_load(gpus, cards_of(running)), what=f"inspect to show {name}")
    return running


def pod_load(gpus: GpuCluster, cards: Mapping[str, list[str]]) -> set[str]:
    """The names of the pods with a record on the container's first card."""
    found = gpus.extender.inspect(gpus.node.name)["cards"]
    return {
        each["name"]
        for card in found
        if card["name"] == cards[CONTAINER][0]
        for each in card["pods"]
        if each["recorded"]
    }


def bind(gpus: GpuCluster, space: str, asking: PodBuilder) -> str:
    """Binds a new pod as a scheduler does that only counts."""
    name = gpus.create(space, asking, schedulerName=NO_SCHEDULER)
    target = {"apiVersion": "v1", "kind": "Node", "name": gpus.node.name}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    gpus.cluster.request("POST", f"/api/v1/namespaces/{space}/pods/{name}/binding", binding).must()
    return name


def test_of_three_pods_that_only_counts_have_room_for_two_start(gpus: GpuCluster, space: str) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, 200)
    for name in ("one", "two"):
        gpus.run(space, pod(name).asks(core=55, memory=10))
    more = [bind(gpus, space, pod(name).asks(core=30, memory=10)) for name in "abc"]
    gpus.cluster.wait_until(lambda: len(refusals(gpus, space, more)) == 1, what="one pod to be refused")
    (refused,) = refusals(gpus, space, more)
    for name in more:
        if name != refused:
            wait_recorded(gpus, space, name)


def refusals(gpus: GpuCluster, space: str, pods: list[str]) -> set[str]:
    events = gpus.cluster.request("GET", f"/api/v1/namespaces/{space}/events").must()["items"]
    why = "the node's cards have no room for it"
    return {name for each in events if why in each["message"] and (name := each["involvedObject"]["name"]) in pods}


def test_a_pod_bound_by_another_scheduler_gets_a_free_card(gpus: GpuCluster, space: str) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, 200)
    first = gpus.run(space, pod("first").asks(core=100, memory=59))
    second = wait_recorded(gpus, space, bind(gpus, space, pod("second").asks(core=100, memory=59)))
    assert cards_of(first) != cards_of(second)


def test_a_pod_that_is_created_with_a_node_name_gets_a_card(gpus: GpuCluster) -> None:
    gpus.agent.wait_offered(names.VCUDA_CORE, 200)
    with gpus.space(names.KUBE_SYSTEM) as space:
        name = gpus.create(space, pod("placed").asks(core=30, memory=10), nodeName=gpus.node.name)
        wait_recorded(gpus, space, name)
