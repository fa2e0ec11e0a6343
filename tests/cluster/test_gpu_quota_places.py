"""GpuQuotas by model and by pool: the stock scheduler calls the extender, and no team gets more than allowed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest

from cli.__main__ import main as halfcard
from devcluster.cluster import Cluster
from devcluster.control_plane.client import ApiResponse
from devcluster.fake_nodes.gpu_nodes import GpuNodes
from devcluster.objects import Object
from devcluster.services.extender_installation import ExtenderInstallation
from devcluster.services.installation import Installation
from devcluster.services.quota_installation import QuotaInstallation, refusal
from halfcard import names
from halfcard.claims import WHOLE_CARD
from halfcard.quota.ledger import used
from tests.builders import pod

from .manifests import complete, resources, workload
from .site import node_of

A100, T4 = "NVIDIA-A100-SXM4-80GB", "Tesla-T4"
NODES: Final = (GpuNodes(2, A100, 81920), GpuNodes(2, T4, 15360))
LAB: Final = "gpu-manager-tesla-t4-0001"
"""The only node that belongs to a pool."""
OTHER_T4: Final = "gpu-manager-tesla-t4-0000"


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster with 16 cards of each model, all of Halfcard and the stock scheduler."""

    quotas: QuotaInstallation
    extender: ExtenderInstallation

    def create(self, team: str, name: str, *, model: str = "", core: int = 100, dry_run: bool = False) -> ApiResponse:
        item = complete(pod(name).asks(core=core, **({} if core >= WHOLE_CARD else {"memory": 4})))
        item["metadata"]["annotations"] = {names.ASK_MODEL: model} if model else {}
        return self.quotas.webhook.create(team, item, dry_run=dry_run)

    def pods(self, team: str) -> list[Object]:
        found: list[Object] = self.quotas.cluster.request("GET", f"/api/v1/namespaces/{team}/pods").must()["items"]
        return found

    def bound(self, team: str) -> Mapping[str, int]:
        """Returns the number of bound pods by model."""
        named = (node_of(each) for each in self.pods(team))
        return Counter("A100" if "a100" in node else "T4" for node in named if node)

    def wait_until_settled(self, team: str, *, bound: int) -> None:
        """Waits until `bound` pods have a node, and the scheduler has reported why the others have none."""

        def settled() -> bool:
            pods = self.pods(team)
            refused = [each for each in pods if not node_of(each) and each["status"].get("conditions")]
            return len(pods) - len(refused) == sum(self.bound(team).values()) == bound

        self.quotas.cluster.wait_until(settled, what=f"{bound} pods of {team} to be bound", seconds=60)

    @contextmanager
    def cordoned(self, *nodes: str) -> Iterator[None]:
        """Keeps pods off these nodes."""
        assert self.quotas.cluster.kubectl("cordon", *nodes).code == 0
        try:
            yield
        finally:
            assert self.quotas.cluster.kubectl("uncordon", *nodes).code == 0

    def delete_pending(self, team: str) -> None:
        """Deletes the pods without a node, which would get one as soon as the quota allows."""
        for each in self.pods(team):
            if not node_of(each):
                path = f"/api/v1/namespaces/{team}/pods/{each['metadata']['name']}"
                self.quotas.cluster.request("DELETE", path).must()

    def counted(self, ledger: str) -> Mapping[str, int]:
        """Waits until all reservations are settled, and returns the usage."""
        self.quotas.cluster.wait_until(
            lambda: not self.quotas.ledger(ledger).reservations, what="the reservations to be settled", seconds=90
        )
        return used(self.quotas.ledger(ledger))


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with Cluster() as cluster, ExtenderInstallation(cluster) as extender:
        webhook = Installation(cluster)
        webhook.add_replica()
        webhook.register()
        service = QuotaInstallation(webhook)
        service.add_replica()
        cluster.add_gpu_nodes(NODES)
        assert cluster.kubectl("label", "node", LAB, f"{names.POOL_LABELS[0]}=lab").code == 0
        extender.add_replica()
        extender.schedule_by(extender.recommended())
        service.wait_led()
        yield Scene(service, extender)


@pytest.fixture
def team(scene: Scene, request: pytest.FixtureRequest) -> str:
    return scene.quotas.cluster.create_namespace(f"team-{abs(hash(request.node.name)) % 10**8}")


def test_pods_get_at_most_what_is_allowed_of_each_model(scene: Scene, team: str) -> None:
    ledger = scene.quotas.allow(team, byModel={"A100": {"cards": 3}, "T4": {"cards": 2}})
    for number in range(12):
        answer = scene.create(team, f"p{number}")
        assert answer.ok or "cards of model" in refusal(answer)
    scene.wait_until_settled(team, bound=5)
    assert scene.bound(team) == {"A100": 3, "T4": 2}
    counted = scene.counted(ledger)
    assert (counted["cards of model A100"], counted["cards of model T4"]) == (3, 2)
    scene.quotas.cluster.wait_until(
        lambda: (
            scene.quotas.status(team).get("places")
            == [{"place": "model A100", "cards": "3/3"}, {"place": "model T4", "cards": "2/2"}]
        ),
        what="the status",
    )


def test_the_scheduler_gets_the_exceeded_amounts(scene: Scene, team: str) -> None:
    scene.quotas.allow(team, byModel={"A100": {"cards": 1}})
    scene.create(team, "first", model="A100").must()
    scene.wait_until_settled(team, bound=1)
    scene.quotas.cluster.wait_until(
        lambda: not scene.create(team, "b", model="A100", dry_run=True).ok, what="A100 to be known to be full"
    )
    another = scene.create(team, "another", dry_run=True).must()
    answer = scene.extender.filter(another, "gpu-manager-nvidia-a100-sxm4-80gb-0001", LAB)
    assert answer["NodeNames"] == [LAB]
    (message,) = answer["FailedAndUnresolvableNodes"].values()
    assert "cards of model A100=1 (1 more needed: 1 whole card asked, 0 whole cards free)" in message


def test_a_pod_without_quota_for_any_model_is_refused_at_creation(scene: Scene, team: str) -> None:
    scene.quotas.allow(team, byModel={"A100": {"cards": 1}, "*": {"cards": 0}})
    message = refusal(scene.create(team, "t4", model="T4"))
    assert f"exceeded quota: {team}/gpu, requested: cards of model *=1" in message
    scene.create(team, "a100").must()
    scene.wait_until_settled(team, bound=1)
    scene.quotas.cluster.wait_until(
        lambda: not scene.create(team, "another", dry_run=True).ok, what="the model to be known to be full"
    )


def test_a_pool_quota_limits_pods_and_a_raise_applies_at_once(scene: Scene, team: str) -> None:
    ledger = scene.quotas.allow(team, byPool={"lab": {"cores": 200}})
    for number in range(4):
        item = complete(pod(f"p{number}").asks(core=100).specified(nodeSelector={"kubernetes.io/hostname": LAB}))
        scene.quotas.webhook.create(team, item).must()
    scene.wait_until_settled(team, bound=2)
    assert scene.counted(ledger)["cores of pool lab"] == 200
    scene.quotas.allow(team, byPool={"lab": {"cores": 300}})
    scene.wait_until_settled(team, bound=3)


def test_a_waiting_pod_gets_what_a_deleted_pod_frees(scene: Scene, team: str) -> None:
    scene.quotas.allow(team, byModel={"T4": {"cores": 100}, "*": {"cards": 0, "shares": 0}})
    with scene.cordoned(LAB, OTHER_T4):  # or the second might be refused, since the first is already counted
        for name in ("a", "b"):
            scene.create(team, name, model="T4").must()
    scene.wait_until_settled(team, bound=1)
    (first,) = (each["metadata"]["name"] for each in scene.pods(team) if node_of(each))
    path = f"/api/v1/namespaces/{team}/pods/{first}"
    scene.quotas.cluster.request("DELETE", path, {"gracePeriodSeconds": 0}).must()
    scene.wait_until_settled(team, bound=1)
    assert first not in {each["metadata"]["name"] for each in scene.pods(team)}


def test_amounts_stay_exact_while_the_extender_and_the_quota_service_are_killed(scene: Scene, team: str) -> None:
    ledger = scene.quotas.allow(team, byModel={"A100": {"cores": 240}, "T4": {"cores": 180}})
    scene.extender.add_replica()
    scene.quotas.add_replica()
    for number in range(20):
        answer = scene.create(team, f"p{number}", core=30)
        assert answer.ok or "of model" in refusal(answer)
        if number == 6:
            scene.extender.kill(scene.extender.leader())
        if number == 10:
            counting = scene.quotas.wait_led()
            counting.program.kill()
            scene.quotas.replicas.remove(counting)
    scene.quotas.wait_led()
    scene.extender.leader()
    scene.wait_until_settled(team, bound=14)
    assert scene.bound(team) == {"A100": 8, "T4": 6}
    counted = scene.counted(ledger)
    assert (counted["cores of model A100"], counted["cores of model T4"]) == (240, 180)


def test_a_pod_that_waits_for_its_quota_is_explained(
    scene: Scene, team: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.quotas.allow(team, byModel={"A100": {"cards": 0}, "T4": {"cards": 1}})
    item = complete(pod("waits").asks(core=100).specified(nodeSelector={"no": "node"}))
    scene.quotas.webhook.create(team, item).must()
    scene.create(team, "runs").must()
    scene.quotas.cluster.wait_until(lambda: scene.bound(team) == {"T4": 1}, what="runs to be bound")
    scene.quotas.cluster.wait_until(
        lambda: {"place": "model T4", "cards": "1/1"} in scene.quotas.status(team).get("places", []), what="the status"
    )
    admin = ("--kubeconfig", str(scene.quotas.cluster.admin.kubeconfig))
    assert halfcard(["explain", f"{team}/waits", *admin]) == 1
    message = " ".join(capsys.readouterr().out.split())
    assert "It fits on no node" in message
    assert "2 nodes: exceeded quota:" in message and "cards of model A100=1, used: cards of model A100=0" in message
    assert halfcard(["quota", "explain", team, *admin]) == 0
    assert "model A100: cards=0/0 model T4: cards=1/1" in " ".join(capsys.readouterr().out.split())


# --- the ConfigMap of TKE's quota admission ---------------------------------------------------------------------------


def write_map(scene: Scene, text: str) -> None:
    item = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": names.GPU_QUOTA_MAP, "namespace": names.KUBE_SYSTEM},
        "data": {names.GPU_QUOTA_KEY: text},
    }
    done = scene.quotas.cluster.kubectl("apply", "-f-", stdin=json.dumps(item))
    assert done.code == 0, done.stderr


def test_the_quota_map_of_tke_works_unchanged_and_imported(
    scene: Scene, team: str, capsys: pytest.CaptureFixture[str]
) -> None:
    quotas, ledger = scene.quotas, f"gpuquotamap.{team}"
    write_map(scene, json.dumps({team: {"quota": {"T4": 2}}, "odd": {"quota": {"T4": "many"}}}))
    quotas.cluster.wait_until(lambda: quotas.ledger(ledger).is_ready, what="the map to be counted")
    for number in range(3):
        scene.create(team, f"p{number}")
    scene.wait_until_settled(team, bound=2)
    assert scene.bound(team) == {"T4": 2}
    quotas.cluster.wait_until(lambda: not scene.create(team, "x", dry_run=True).ok, what="the map to be full")
    message = refusal(scene.create(team, "x", dry_run=True))
    assert f"exceeded quota: kube-system/gpuquota for {team}, requested: cores of model T4=100" in message
    quotas.cluster.wait_until(lambda: "limits nothing" in events_of_map(scene), what="the event about the odd entry")

    write_map(scene, "{")  # the previous content stays in force
    quotas.cluster.wait_until(
        lambda: "holds no JSON object" in events_of_map(scene), what="the event about the mistake"
    )
    assert not scene.create(team, "x", dry_run=True).ok

    scene.delete_pending(team)
    write_map(scene, json.dumps({team: {"quota": {"T4": 3}}}))
    quotas.cluster.wait_until(lambda: scene.create(team, "x", dry_run=True).ok, what="the raised map to be enforced")
    admin = str(quotas.cluster.admin.kubeconfig)
    assert halfcard(["quota", "import", "--kubeconfig", admin]) == 0
    done = quotas.cluster.kubectl("apply", "-f-", stdin=capsys.readouterr().out)
    assert done.code == 0, done.stderr
    assert quotas.cluster.kubectl("-n", names.KUBE_SYSTEM, "delete", "configmap", names.GPU_QUOTA_MAP).code == 0
    quotas.cluster.wait_until(
        lambda: {"place": "model T4", "cores": "200/300"} in quotas.status(team, names.GPU_QUOTA_MAP).get("places", []),
        what="the imported quota to be counted",
    )


def events_of_map(scene: Scene) -> str:
    done = scene.quotas.cluster.kubectl("-n", names.KUBE_SYSTEM, "describe", "configmap", names.GPU_QUOTA_MAP)
    return done.stdout


# --- pods that wait ---------------------------------------------------------------------------------------------------


def test_a_pod_that_no_node_could_take_is_not_charged_and_blocks_no_other(scene: Scene, team: str) -> None:
    """Sixteen cards of each model exist, eight on each node."""
    ledger = scene.quotas.allow(team, hard={"cards": 17}, onExceeded="Gate")
    scene.create(team, "impossible", core=1600).must()
    for name in "ab":
        scene.create(team, name).must()
    scene.wait_until_settled(team, bound=2)
    assert scene.counted(ledger)["cards"] == 2
    scene.quotas.cluster.wait_until(
        lambda: "no node could take the pod" in scene.quotas.webhook.kubectl(team, "describe", "pod/impossible").stdout,
        what="the Event",
    )


def deployment(core: int) -> Object:
    """Returns a Deployment whose rollout adds a pod before it deletes one."""
    item = workload("Deployment", "web", complete(pod("p").asks(core=core)))
    item["spec"]["strategy"] = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    return item


def wait_until_rolled_out(scene: Scene, team: str, core: int) -> None:
    """Waits until the only pod of the Deployment is of the new template."""

    def done() -> bool:
        pods = [each for each in scene.pods(team) if each["metadata"]["name"].startswith("web-")]
        return [resources(each)["requests"][names.VCUDA_CORE] for each in pods if node_of(each)] == [f"{core}"]

    scene.quotas.cluster.wait_until(done, what="the rollout", seconds=60)


def test_a_rollout_does_not_wait_behind_a_pod_that_needs_more_than_is_free(scene: Scene, team: str) -> None:
    scene.quotas.allow(team, hard={"cards": 4}, onExceeded="Gate")
    scene.quotas.webhook.kubectl(team, "apply", "-f-", item=deployment(200))
    wait_until_rolled_out(scene, team, 200)
    scene.create(team, "large", core=400).must()
    scene.quotas.cluster.wait_until(lambda: scene.quotas.status(team).get("waiting") == 1, what="large to wait")
    assert scene.quotas.webhook.kubectl(team, "apply", "-f-", item=deployment(100)).code == 0
    wait_until_rolled_out(scene, team, 100)


def test_a_rollout_does_not_wait_behind_its_own_earlier_revision(scene: Scene, team: str) -> None:
    scene.quotas.allow(team, hard={"cards": 2}, onExceeded="Gate")
    scene.create(team, "runs").must()
    scene.wait_until_settled(team, bound=1)
    scene.quotas.webhook.kubectl(team, "apply", "-f-", item=deployment(200))
    scene.quotas.cluster.wait_until(lambda: scene.quotas.status(team).get("waiting") == 1, what="web to wait")
    assert scene.quotas.webhook.kubectl(team, "apply", "-f-", item=deployment(100)).code == 0
    wait_until_rolled_out(scene, team, 100)


def stateful_set(revision: int) -> Object:
    """Returns a StatefulSet of three whole cards, whose pods are replaced when they are deleted."""
    item = workload("StatefulSet", "web", complete(pod("p").asks(core=100).annotated({"revision": f"{revision}"})))
    item["spec"] |= {"replicas": 3, "podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"}}
    return item


def wait_until_bound(scene: Scene, team: str, revision: int, *names_of_pods: str) -> None:
    def bound() -> set[str]:
        pods = [each["metadata"] for each in scene.pods(team) if node_of(each)]
        return {each["name"] for each in pods if each.get("annotations", {}).get("revision") == f"{revision}"}

    scene.quotas.cluster.wait_until(lambda: bound() >= {*names_of_pods}, what=f"{names_of_pods}", seconds=90)


def test_a_rollout_keeps_its_turns_while_the_quota_service_is_killed(scene: Scene, team: str) -> None:
    scene.quotas.allow(team, hard={"cards": 3}, onExceeded="Gate")
    kubectl = partial(scene.quotas.webhook.kubectl, team)
    kubectl("apply", "-f-", item=stateful_set(1))
    wait_until_bound(scene, team, 1, "web-0", "web-1", "web-2")
    scene.create(team, "large", core=300).must()
    queue = [{"pod": f"{team}/large", "lacks": "cards=3"}]
    scene.quotas.cluster.wait_until(lambda: scene.quotas.status(team).get("queue") == queue, what="large to wait")
    kubectl("apply", "-f-", item=stateful_set(2))
    kubectl("delete", "pod", "web-0", "--force")
    wait_until_bound(scene, team, 2, "web-0")
    for each in (*scene.quotas.replicas,):
        each.program.kill()
        scene.quotas.replicas.remove(each)
    kubectl("delete", "pod", "web-1", "--force")
    scene.quotas.add_replica()
    wait_until_bound(scene, team, 2, "web-1")
    kubectl("delete", "pod", "web-2", "--force")
    wait_until_bound(scene, team, 2, "web-2")
