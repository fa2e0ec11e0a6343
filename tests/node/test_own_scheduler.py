"""The chart's own kube-scheduler on a real node, in a cluster whose scheduler is never touched."""

from __future__ import annotations

import io
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Final

import pytest

from cli.__main__ import main as halfcard
from devcluster.cluster import Cluster
from devcluster.nodes.node import RealNode
from devcluster.nodes.services import start_services
from devcluster.objects import Object
from halfcard import names
from tests.builders import pod
from tests.cluster.helm import Helm, load_scheduler_image
from tests.cluster.pods import busybox_pod, create_pod, get_pod, wait_for_phase
from tests.cluster.site import cards_of

from .container_report import read_report, reporting
from .halfcard_pods import halfcard_pods
from .readme_installation import MANAGED, run_the_readme

pytestmark = pytest.mark.timeout(600)  # the first test installs everything, on a machine that may be busy

_MAX_INSTALLATION_S: Final = 300.0
_TEAM: Final = "team-a"
_CARDS: Final = 4
_RACERS: Final = 5
_PRIORITIES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
_VOLCANO: Final = {
    "agent": {"arguments": ["--fake-gpus=4xT4"]},
    "scheduler": {"enabled": True, "alsoNamed": ["volcano"]},
    "settings": {"node_resources": [names.VCUDA_CORE, names.VCUDA_MEMORY, names.VOLCANO_GPU_MEMORY]},
}


@dataclass(frozen=True)
class Managed:
    """A cluster after the README's commands for control planes of somebody else; `seconds` since there was none."""

    node: RealNode
    card: str
    seconds: float

    @property
    def cluster(self) -> Cluster:
        return self.node.cluster


@pytest.fixture(scope="module")
def managed() -> Iterator[Managed]:
    began = time.monotonic()
    with Cluster() as cluster, RealNode(cluster, "gpu-a") as node:
        start_services(node)
        load_scheduler_image(node)
        cluster.create_namespace(_TEAM)
        card = run_the_readme(cluster, node, MANAGED)
        yield Managed(node, card, time.monotonic() - began)


@pytest.fixture
def cluster(managed: Managed) -> Iterator[Cluster]:
    """The same cluster; what a test creates is deleted, so that its cards are free."""
    yield managed.cluster
    for namespace in (_TEAM, names.KUBE_SYSTEM, "default"):
        done = managed.cluster.kubectl("delete", "daemonsets,pods", "--all", f"--namespace={namespace}")
        assert done.code == 0, done.stderr


def share(name: str, core: int, **fields: Any) -> Object:
    found: Object = reporting(pod(name).asks(core=core, memory=10 if core < 100 else 59)).specified(**fields).manifest
    return found


def run_share(cluster: Cluster, name: str, core: int = 30, **fields: Any) -> Any:
    return wait_for_phase(cluster, _TEAM, create_pod(cluster, _TEAM, share(name, core, **fields)), "Running")


def findings(cluster: Cluster) -> dict[str, Any]:
    """What the doctor finds, by check."""
    output = io.StringIO()
    with redirect_stdout(output):
        halfcard(["doctor", "-o", "json", "--namespace", _TEAM, f"--kubeconfig={cluster.admin.kubeconfig}"])
    return {each["check"]: each for each in json.loads(output.getvalue())["findings"]}


def test_from_no_cluster_to_the_first_share_takes_less_than_five_minutes(managed: Managed) -> None:
    sys.stderr.write(f"from no cluster to the first share, with its own scheduler: {managed.seconds:.0f} s\n")
    assert managed.seconds < _MAX_INSTALLATION_S
    first = get_pod(managed.cluster, "default", "first-share")
    assert first["spec"]["schedulerName"] == names.SCHEDULER
    assert len(cards_of(first)["main"]) == 1 and managed.card


def test_the_doctor_finds_nothing(cluster: Cluster) -> None:
    output = io.StringIO()
    with redirect_stdout(output):
        reached = ["--namespace", _TEAM, f"--kubeconfig={cluster.admin.kubeconfig}"]
        code = halfcard(["doctor", "--strict", "--wait", "60", *reached])
    assert code == 0, output.getvalue()


def test_only_the_lone_pods_with_cards_go_to_halfcards_scheduler(cluster: Cluster) -> None:
    """A DaemonSet's pod with cards has the cluster's scheduler, and its record from the agent."""
    plain = create_pod(cluster, _TEAM, busybox_pod("plain", "sleep infinity"))
    template = share("of-a-daemon", 30)
    daemons = {
        "metadata": {"name": "daemons"},
        "spec": {
            "selector": {"matchLabels": {"app": "daemons"}},
            "template": {
                "metadata": {"labels": {"app": "daemons"}},
                "spec": {**template["spec"], "restartPolicy": "Always"},
            },
        },
    }
    cluster.request("POST", f"/apis/apps/v1/namespaces/{_TEAM}/daemonsets", daemons).must()

    labelled = "?labelSelector=app=daemons"
    cluster.wait_until(lambda: len(pods_of(cluster, _TEAM, labelled)) == 1, what="the DaemonSet's pod")
    (daemon,) = pods_of(cluster, _TEAM, labelled)
    alone = run_share(cluster, "alone")
    running = [wait_for_phase(cluster, _TEAM, name, "Running") for name in (plain, daemon["metadata"]["name"])]
    assert {each["spec"]["schedulerName"] for each in running} == {names.DEFAULT_SCHEDULER}
    assert alone["spec"]["schedulerName"] == names.SCHEDULER
    assert cards_of(running[1])


def test_a_pod_of_higher_priority_gets_a_card_of_one_of_lower_priority(cluster: Cluster) -> None:
    for name, value in (("low", 1), ("high", 1000)):
        cluster.request("POST", _PRIORITIES, {"metadata": {"name": name}, "value": value}).must()
    victims = [run_share(cluster, f"low-{number}", 100, priorityClassName="low") for number in range(_CARDS)]
    winner = run_share(cluster, "high", 100, priorityClassName="high")
    left = {each["metadata"]["name"] for each in pods_of(cluster, _TEAM)}
    assert len({each["metadata"]["name"] for each in victims} - left) == 1
    assert len(cards_of(winner)["containers-0"]) == 1


def pods_of(cluster: Cluster, namespace: str, query: str = "") -> list[Object]:
    found: list[Object] = cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods{query}").must()["items"]
    return found


def test_two_schedulers_that_bind_at_once_give_no_card_twice(cluster: Cluster) -> None:
    """Each pod wants more than half a card. Pods of the exempt namespace keep the cluster's scheduler, which only
    counts: counts have room for six of them, cards for four.
    """
    places = [(namespace, f"racer-{number}") for number in range(_RACERS) for namespace in (_TEAM, names.KUBE_SYSTEM)]
    with ThreadPoolExecutor(len(places)) as threads:
        list(threads.map(lambda place: create_pod(cluster, place[0], share(place[1], 60)), places))
    cluster.wait_until(lambda: len(holders(cluster)) == _CARDS, what="every card to have a pod", seconds=90)
    cluster.wait_until(lambda: all(has_said_why(cluster, each) for each in losers(cluster)), what="Events", seconds=60)
    given = Counter(card for each in holders(cluster) for card in given_cards(cluster, each))
    assert sorted(given.values()) == [1] * _CARDS
    assert len({cards_of(each)["containers-0"][0] for each in holders(cluster)}) == _CARDS


def holders(cluster: Cluster) -> list[Object]:
    return [each for each in racers(cluster) if each["status"]["phase"] == "Running"]


def losers(cluster: Cluster) -> list[Object]:
    """The pods that were bound, and whose containers do not run."""
    return [each for each in racers(cluster) if "nodeName" in each["spec"] and each["status"]["phase"] != "Running"]


def racers(cluster: Cluster) -> list[Object]:
    return [each for namespace in (_TEAM, names.KUBE_SYSTEM) for each in pods_of(cluster, namespace)]


def given_cards(cluster: Cluster, running: Object) -> tuple[str, ...]:
    metadata = running["metadata"]
    return read_report(cluster, metadata["namespace"], metadata["name"], "containers-0").cards


def has_said_why(cluster: Cluster, loser: Object) -> bool:
    """Whether an Event of the pod says what is wrong, and what to do."""
    metadata = loser["metadata"]
    selector = f"involvedObject.uid={metadata['uid']}"
    path = f"/api/v1/namespaces/{metadata['namespace']}/events?fieldSelector={selector}"
    said = [each["message"] for each in cluster.request("GET", path).must()["items"]]
    fixes = ("to have it placed again", "delete this one and create it again")
    return any(fix in each for fix in fixes for each in said)


def test_a_new_ca_of_the_extender_restarts_it(cluster: Cluster) -> None:
    before = scheduler_pods(cluster)
    assert halfcard(["certs", "rotate", "extender", "--authority", f"--kubeconfig={cluster.admin.kubeconfig}"]) == 0
    cluster.wait_until(lambda: len(scheduler_pods(cluster) - before) == 2, what="new pods", seconds=120)
    rolled_out = cluster.kubectl("rollout", "status", f"deployment/{names.SCHEDULER}", f"--namespace={names.NAMESPACE}")
    assert rolled_out.code == 0, rolled_out.stderr
    run_share(cluster, "after")


def scheduler_pods(cluster: Cluster) -> set[str]:
    return {each["metadata"]["uid"] for each in halfcard_pods(cluster, names.SCHEDULER)}


def test_a_pod_of_volcano_runs_without_volcano(managed: Managed, cluster: Cluster) -> None:
    Helm(cluster).upgrade(_VOLCANO)
    offered = f"/api/v1/nodes/{managed.node.name}"
    cluster.wait_until(
        lambda: names.VOLCANO_GPU_MEMORY in cluster.request("GET", offered).must()["status"]["allocatable"],
        what="memory in Volcano's unit",
    )
    asking = pod("gpu-pod1").container(limits={names.VOLCANO_GPU_MEMORY: "2048"})
    item = reporting(asking).specified(schedulerName="volcano")
    running = wait_for_phase(cluster, _TEAM, create_pod(cluster, _TEAM, item.manifest), "Running")
    assert running["spec"]["schedulerName"] == "volcano"
    assert len(cards_of(running)["containers-0"]) == 1


def test_a_wrong_image_and_a_second_scheduler_without_the_extender_are_found(cluster: Cluster) -> None:
    """The earlier pods stay until the new ones are ready; this test is the last one."""
    image = "registry.k8s.io/kube-scheduler:v1.99.0"
    update = cluster.kubectl(
        "set", "image", f"deployment/{names.SCHEDULER}", f"scheduler={image}", f"--namespace={names.NAMESPACE}"
    )
    assert update.code == 0, update.stderr
    plant_second_scheduler(cluster)
    cluster.wait_until(
        lambda: {"scheduler-version", "image-missing", "scheduler-without-extender"} <= findings(cluster).keys(),
        what="both faults to be found",
        seconds=60,
    )
    found = findings(cluster)
    assert image in found["scheduler-version"]["got"]
    assert "scheduler.image" in found["image-missing"]["fix"]
    assert found["scheduler-without-extender"]["where"] == f"pod {_TEAM}/second"


def plant_second_scheduler(cluster: Cluster) -> None:
    """Creates a pod whose configuration has a profile that Halfcard serves, and no extender."""
    written = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    configuration = json.dumps({**written, "profiles": [{"schedulerName": names.SCHEDULER}]})
    maps = f"/api/v1/namespaces/{_TEAM}/configmaps"
    cluster.request("POST", maps, {"metadata": {"name": "second"}, "data": {"s.yaml": configuration}}).must()
    item = busybox_pod("second", "sleep infinity")
    item["metadata"]["labels"] = {"component": "scheduler"}
    (container,) = item["spec"]["containers"]
    container["args"] = ["--config=/c/s.yaml"]
    container["volumeMounts"] = [{"name": "c", "mountPath": "/c"}]
    item["spec"]["volumes"] = [{"name": "c", "configMap": {"name": "second"}}]
    create_pod(cluster, _TEAM, item)
