"""Fake nodes behave like nodes for the real scheduler and controllers; the load generator counts right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster.cluster import Cluster
from devcluster.control_plane.loader import LoadGenerator, LoadRequest, Tally, progress_line
from devcluster.fake_nodes.gpu_nodes import SYSTEMS, GpuNodes, fleet, gpu_nodes
from devcluster.objects import Object
from halfcard import names
from halfcard.capacity import CardStock
from halfcard.cards import Node
from halfcard.cluster_view import read_node

from . import load
from .fake_pods import Counts, counted, creations, deletions, gpu_pods, wait_for_counts

NODES = 200
PODS = 300
RACK = [GpuNodes(1, "Tesla-T4", 15360, cards=4)]


@pytest.fixture(scope="module")
def fleet_cluster() -> Iterator[Cluster]:
    """A cluster with 200 nodes of a mixed fleet."""
    with Cluster(flags=load.NO_RATE_LIMITS) as cluster:
        cluster.add_gpu_nodes(fleet(NODES))
        yield cluster


def items(cluster: Cluster, path: str) -> list[Any]:
    found: list[Any] = cluster.request("GET", path).must()["items"]
    return found


def used(pods: list[Any]) -> dict[tuple[str, str], int]:
    total: dict[tuple[str, str], int] = {}
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for resource, amount in container["resources"]["limits"].items():
                place = pod["spec"]["nodeName"], resource
                total[place] = total.get(place, 0) + int(amount)
    return total


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_halfcard_reads_the_cards_that_a_row_says(system: str) -> None:
    (item,) = gpu_nodes([GpuNodes(1, "NVIDIA-A10", 23040, system, cards=3)])
    node = read_node(item)
    assert isinstance(node, Node)
    assert [(card.model, card.memory_mib and card.memory_mib // 1024) for card in node.cards] == [
        ("NVIDIA-A10", 22)
    ] * 3


@pytest.mark.parametrize("nodes", [1, 7, 99, 5000])
def test_a_fleet_has_the_wanted_number_of_uniquely_named_nodes(nodes: int) -> None:
    found = [item["metadata"]["name"] for item in gpu_nodes(fleet(nodes))]
    assert len(found) == len(set(found)) == nodes


def test_a_fleet_has_room_for_its_pods_in_their_proportions() -> None:
    """5,000 nodes have room for twice the 20,000 pods of the large load."""
    capacity: dict[str, int] = {}
    for item in gpu_nodes(fleet(5000)):
        for resource, amount in item["status"]["capacity"].items():
            if "/" in resource:
                capacity[resource] = capacity.get(resource, 0) + int(amount)
    requested: dict[str, int] = {}
    for pod in gpu_pods(20000):
        for resource, amount in pod["spec"]["containers"][0]["resources"]["limits"].items():
            requested[resource] = requested.get(resource, 0) + int(amount)
    assert all(2 * amount <= capacity[resource] for resource, amount in requested.items())


# --- nodes -----------------------------------------------------------------------------------------------------------


def test_every_node_is_ready_untainted_and_renews_a_lease(fleet_cluster: Cluster) -> None:
    nodes = items(fleet_cluster, "/api/v1/nodes")
    assert len(nodes) == NODES
    assert not [node for node in nodes if node["spec"].get("taints")]
    assert all(stored(node) == CardStock(8, node_mib(node)) for node in nodes)
    leases = {lease["metadata"]["name"] for lease in items(fleet_cluster, "/apis/coordination.k8s.io/v1/leases")}
    assert {node["metadata"]["name"] for node in nodes} <= leases


def stored(node: Object) -> CardStock:
    found = read_node(node)
    assert isinstance(found, Node)
    return CardStock(len(found.cards), found.cards[0].memory_mib)


def node_mib(node: Object) -> int:
    """Returns the usable memory of a card: gpu-manager counts in 256 MiB, gpushare in GiB, and the rest is unused."""
    labelled = int(node["metadata"]["labels"][names.NVIDIA_LABEL_MEMORY])
    resources = node["status"]["capacity"]
    unit = 256 if names.VCUDA_CORE in resources else 1024 if names.ALIYUN_GPU_MEM in resources else 1
    return labelled // unit * unit


def test_kwok_leaves_other_nodes_alone(fleet_cluster: Cluster) -> None:
    fleet_cluster.add_node("real", {}, labels={"mine": "yes"})
    space = fleet_cluster.create_namespace("unmanaged")
    pod = next(gpu_pods(1))
    pod["spec"] |= {"nodeName": "real", "containers": [{"name": "main", "image": "none"}]}
    managed = next(gpu_pods(1)) | {"metadata": {"name": "managed"}}
    for each in (pod, managed):
        fleet_cluster.request("POST", f"/api/v1/namespaces/{space}/pods", each).must()
    wait_for_counts(LoadGenerator(fleet_cluster), space, lambda counts: counts.running == 1, pods=2)
    phases = {
        each["metadata"]["name"]: each["status"]["phase"]
        for each in items(fleet_cluster, f"/api/v1/namespaces/{space}/pods")
    }
    assert phases == {"managed": "Running", "load-00000": "Pending"}
    fleet_cluster.request("DELETE", "/api/v1/nodes/real").must()


# --- pods ------------------------------------------------------------------------------------------------------------


def test_pods_are_scheduled_within_capacity_run_and_are_deleted(fleet_cluster: Cluster) -> None:
    space, load_ = fleet_cluster.create_namespace("fleet"), LoadGenerator(fleet_cluster)
    assert load_.send(creations(space, PODS), what="pods created", total=PODS).count == PODS
    wait_for_counts(load_, space, lambda counts: counts == Counts(PODS, PODS, PODS), pods=PODS)
    capacity = {
        (node["metadata"]["name"], resource): int(amount)
        for node in items(fleet_cluster, "/api/v1/nodes")
        for resource, amount in node["status"]["allocatable"].items()
        if "/" in resource
    }
    pods = items(fleet_cluster, f"/api/v1/namespaces/{space}/pods")
    assert len({pod["status"]["podIP"] for pod in pods}) == PODS
    assert all(amount <= capacity[place] for place, amount in used(pods).items())
    load_.send(deletions(space, PODS), what="pods deleted", total=PODS)
    wait_for_counts(load_, space, lambda counts: counts.pods == 0, pods=PODS)


def test_a_pod_that_fits_nowhere_stays_pending_with_the_schedulers_reason(fleet_cluster: Cluster) -> None:
    space = fleet_cluster.create_namespace("too-large")
    pod = next(gpu_pods(1))
    amounts = {names.VCUDA_CORE: "900"}
    pod["spec"]["containers"][0]["resources"] = {"limits": amounts, "requests": amounts}
    path = f"/api/v1/namespaces/{space}/pods"
    fleet_cluster.request("POST", path, pod).must()

    def refused() -> bool:
        conditions = fleet_cluster.request("GET", f"{path}/load-00000").must()["status"].get("conditions", [])
        return any(f"Insufficient {names.VCUDA_CORE}" in each.get("message", "") for each in conditions)

    fleet_cluster.wait_until(refused, what="the scheduler's reason")
    assert counted_by_kubectl(fleet_cluster, space) == ["load-00000 Pending"]


def counted_by_kubectl(cluster: Cluster, space: str) -> list[str]:
    wanted = "-o=jsonpath={range .items[*]}{.metadata.name} {.status.phase}{'\\n'}{end}"
    return cluster.kubectl("-n", space, "get", "pods", wanted).stdout.splitlines()


def test_a_deployment_becomes_available_with_its_sidecar_and_a_job_completes(fleet_cluster: Cluster) -> None:
    space = fleet_cluster.create_namespace("controllers")
    spec = next(gpu_pods(1))["spec"]
    sidecar = {"name": "sidecar", "image": "none", "restartPolicy": "Always"}
    first = {"name": "first", "image": "none"}
    labels = {"app": "server"}
    template = {"metadata": {"labels": labels}, "spec": {**spec, "initContainers": [first, sidecar]}}
    deployment = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    job = {"template": {"spec": {**spec, "restartPolicy": "Never"}}}
    manifests: list[Object] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "server"}, "spec": deployment},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": job},
    ]
    for manifest in manifests:
        done = fleet_cluster.kubectl("-n", space, "create", "-f-", stdin=json.dumps(manifest))
        assert done.code == 0, done.stderr
    for condition, what in (("Available", "deployment/server"), ("Complete", "job/once")):
        done = fleet_cluster.kubectl("-n", space, "wait", what, f"--for=condition={condition}", "--timeout=60s")
        assert done.code == 0, done.stderr


def test_the_whole_load_runs_and_its_report_is_json(fleet_cluster: Cluster) -> None:
    lines: list[str] = []
    tallies = list(
        load.measure(LoadGenerator(fleet_cluster, connections=2, say=lines.append), fleet_cluster, nodes=0, pods=20)
    )
    steps = [
        "nodes created",
        "nodes ready",
        "pods created",
        "pods scheduled",
        "pods running",
        "pods deleted",
        "pods gone",
    ]
    assert [each.what for each in tallies] == steps
    assert [each.count for each in tallies] == [0, 0, 20, 20, 20, 20, 20]
    assert [line.split()[0] for line in load.table(tallies).splitlines()[1:3]] == ["nodes", "nodes"]
    assert [step["what"] for step in json.loads(load.report(tallies, 2))["steps"]] == steps


# --- the loader ------------------------------------------------------------------------------------------------------


def test_a_refused_request_ends_the_load_with_the_servers_words(fleet_cluster: Cluster) -> None:
    space = fleet_cluster.create_namespace("refused")
    path = f"/api/v1/namespaces/{space}/pods"
    wrong = LoadRequest("POST", path, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "wrong"}})
    with pytest.raises(AssertionError, match=r"POST .*/pods: the API server answered 422: .*spec.containers"):
        LoadGenerator(fleet_cluster).send([wrong], what="pods created", total=1)


@pytest.mark.parametrize(
    ("done", "total", "line"),
    [
        (Tally("pods created", 0, 1.0), 500, "  0 of 500 pods created, 0/s, starting"),
        (Tally("pods created", 4000, 20.0), 20000, "  4,000 of 20,000 pods created, 200/s, about 80 s left"),
    ],
)
def test_progress_says_what_is_done_and_what_is_left(done: Tally, total: int, line: str) -> None:
    assert progress_line(done, total) == line


def test_pods_are_counted_by_the_columns_that_the_server_names() -> None:
    columns = [{"name": name} for name in ("Name", "Node", "Status")]
    rows = [{"cells": cells} for cells in (["a", "n", "Running"], ["b", "n", "Pending"], ["c", "<none>", "Pending"])]
    assert counted({"columnDefinitions": columns, "rows": rows}) == Counts(3, 2, 1)
    assert counted({"columnDefinitions": columns, "rows": None}) == Counts()
