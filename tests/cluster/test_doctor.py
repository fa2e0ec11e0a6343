"""`halfcard doctor` on a real control plane: no findings if nothing is wrong, and one for each planted fault."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import yaml

from cli.__main__ import main as halfcard
from cli.diagnosis.observations import settings_hash
from devcluster.build.binaries import program_path
from devcluster.cluster import Cluster
from devcluster.control_plane.client import CommandResult
from devcluster.control_plane.users import User
from devcluster.fake_nodes.gpu_nodes import GpuNodes
from devcluster.objects import Object, is_ready
from devcluster.services.extender_installation import ExtenderInstallation
from devcluster.services.installation import Installation
from devcluster.services.quota_installation import QuotaInstallation
from deviceplugin.advertise.announcement import announcement
from deviceplugin.advertise.node_events import EVENTS_PATH, NodeEvent, node_event
from deviceplugin.advertise.node_writer import NodeWriter
from halfcard import names
from halfcard.cards import Card
from halfcard.placing.records import RecordWriter
from kube.api.calls import ApiCalls
from kube.api.kubeconfig import from_kubeconfig
from serving.log import Log
from tests.builders import pod
from tests.cli.diagnosis.papers import authority, leaf
from tests.docs.pages import ROOT

from .load import NO_RATE_LIMITS
from .manifests import complete, resource_quota, share, workload

NODE: Final = "gpu-manager-tesla-t4-0000"
CARDS: Final = (Card(0, "Tesla T4", 15360, "GPU-0"), Card(1, "Tesla T4", 15360, "GPU-1"))
SETTINGS: Final = {"node_resources": [names.VCUDA_CORE, names.VCUDA_MEMORY]}
TEAM: Final = "team"
EXEMPT: Final = names.KUBE_SYSTEM
HOOKS: Final = "/apis/admissionregistration.k8s.io/v1"
VALIDATING: Final = f"{HOOKS}/validatingwebhookconfigurations/halfcard"
IMAGE: Final = "halfcard.dev/halfcard:1"
TIMEOUT_S: Final = 60
HERE: Final = f"/api/v1/namespaces/{names.NAMESPACE}"


@dataclass
class Installed:
    """All processes of Halfcard, and one node with an agent's inventory and a pod of kwok instead of the agent."""

    webhook: Installation
    quotas: QuotaInstallation
    extender: ExtenderInstallation

    @property
    def cluster(self) -> Cluster:
        return self.webhook.cluster

    # --- the doctor ---------------------------------------------------------------------------------------------------

    def run_doctor(self, *arguments: str, user: User | None = None) -> tuple[int, str]:
        out = io.StringIO()
        kubeconfig = (user or self.cluster.admin).kubeconfig
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            code = halfcard(["doctor", "--kubeconfig", str(kubeconfig), *arguments])
        return code, out.getvalue()

    def first_findings(self) -> dict[str, str]:
        """Returns the first finding of each check."""
        findings = json.loads(self.run_doctor("-o", "json")[1])["findings"]
        return {each["check"]: f"{each['where']}: {each['got']}" for each in reversed(findings)}

    def wait_for_findings(self, *checks: str) -> dict[str, str]:
        """Waits for exactly these findings: the API server uses new configurations and endpoints with a delay."""
        self.cluster.wait_until(
            lambda: sorted(self.first_findings()) == sorted(checks),
            what=f"the doctor to find {checks or 'nothing'}",
            seconds=TIMEOUT_S,
            details=lambda: str(self.first_findings()),
        )
        return self.first_findings()

    # --- the installation ---------------------------------------------------------------------------------------------

    def announce(self, *cards: Card) -> None:
        """Writes the cards to the node as its agent does."""
        asyncio.run(self._announced(cards))

    async def _announced(self, cards: tuple[Card, ...]) -> None:
        calls = ApiCalls(from_kubeconfig(self.cluster.admin.kubeconfig))
        writer = NodeWriter(calls, NODE, Log(), lambda: datetime.now(UTC))
        expected = announcement(cards, {})
        running = asyncio.create_task(writer.run())
        writer.announce(expected)
        async with asyncio.timeout(TIMEOUT_S):
            while not self._is_announced(
                node := await asyncio.to_thread(self.node), expected.inventory, expected.condition.reason
            ):
                writer.observe(node)
                await asyncio.sleep(0.1)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        calls.close()

    @staticmethod
    def _is_announced(node: Object, inventory: str | None, reason: str) -> bool:
        conditions = {each["type"]: each.get("reason") for each in node["status"]["conditions"]}
        written = node["metadata"].get("annotations", {}).get(names.INVENTORY)
        return bool(written == inventory and conditions.get(names.CARDS_CONDITION) == reason)

    def node(self) -> Object:
        found: Object = self.cluster.request("GET", f"/api/v1/nodes/{NODE}").must()
        return found

    def create(self, namespace: str, item: Object) -> None:
        self.webhook.create(namespace, item).must()

    def create_at(self, path: str, item: Object) -> None:
        self.cluster.request("POST", path, item).must()

    def merge(self, path: str, change: Mapping[str, Any]) -> None:
        self.cluster.client.merge(self.cluster.admin, path, dict(change))

    def remove(self, path: str) -> None:
        self.cluster.request("DELETE", path, {"gracePeriodSeconds": 0}).must()

    def gone(self, path: str) -> bool:
        return self.cluster.request("GET", path).status == 404


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    with Cluster(flags=NO_RATE_LIMITS) as cluster, ExtenderInstallation(cluster) as extender:
        webhook = Installation(cluster, settings=SETTINGS)
        webhook.add_replica()
        webhook.register()
        quotas = QuotaInstallation(webhook)
        quotas.add_replica()
        extender.add_replica()
        extender.leader()
        extender.schedule_by(extender.recommended())
        installed = Installed(webhook, quotas, extender)
        _set_up(installed)
        yield installed


def _set_up(installed: Installed) -> None:
    """Creates the settings, a node with an agent, a budget, a native quota and a running pod."""
    cluster, text = installed.cluster, installed.webhook.settings.read_text()
    metadata = {"name": names.SETTINGS_MAP}
    installed.create_at(f"{HERE}/configmaps", {"metadata": metadata, "data": {"settings.yaml": text}})
    cluster.add_gpu_nodes([GpuNodes(1, "Tesla-T4", 15360, cards=2)])
    installed.merge(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {names.AGENT_LABEL: "true"}}})
    installed.announce(*CARDS)
    agent = daemon(names.AGENT, account=names.AGENT, image=IMAGE)
    marks = {names.SETTINGS_HASH: settings_hash(json.loads(text))}
    agent["spec"]["template"]["metadata"]["annotations"] = marks
    installed.create(names.NAMESPACE, agent)
    cluster.wait_until(lambda: _is_ready(installed, names.NAMESPACE), what="kwok to run the agent's pod")
    cluster.create_namespace(TEAM)
    installed.quotas.wait_led()
    installed.quotas.allow(TEAM, hard={"cores": 150, "memory": "64Gi"})
    installed.create(TEAM, resource_quota("counts", {f"limits.{names.VCUDA_CORE}": "300"}))
    installed.create(TEAM, share("work"))
    cluster.wait_until(lambda: _is_ready(installed, TEAM), what="a pod with a card to run")


def _is_ready(installed: Installed, namespace: str) -> bool:
    pods = installed.cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods").must()["items"]
    return bool(pods) and all(is_ready(each) for each in pods)


def daemon(name: str, *, account: str, image: str) -> Object:
    """Returns a DaemonSet for the nodes with the agent's label."""
    item = workload("DaemonSet", name, complete(pod(name).container()))
    spec = item["spec"]["template"]["spec"]
    spec |= {"nodeSelector": {names.AGENT_LABEL: "true"}, "serviceAccountName": account}
    spec["containers"][0]["image"] = image
    return item


def test_a_healthy_installation_has_no_findings(installed: Installed) -> None:
    installed.wait_for_findings()
    code, printed = installed.run_doctor("--strict")
    assert code == 0
    assert printed.startswith("Nothing is wrong: ") and printed.count("\n") == 1


# --- planted faults --------------------------------------------------------------------------------------------------

Planting = Callable[[Installed], Any]


@contextmanager
def unregistered(installed: Installed) -> Iterator[None]:
    installed.remove(VALIDATING)
    yield
    installed.webhook.register()


@contextmanager
def changed_webhook(installed: Installed, number: int, change: Mapping[str, Any]) -> Iterator[None]:
    """Changes fields of one validating webhook; `register` would not restore fields that it does not set."""
    before = installed.cluster.request("GET", VALIDATING).must()["webhooks"]
    after = [{**each, **(change if at == number else {})} for at, each in enumerate(before)]
    installed.merge(VALIDATING, {"webhooks": after})
    yield
    installed.merge(VALIDATING, {"webhooks": before})


def trusting(bundle: bytes | None) -> Planting:
    def plant(installed: Installed) -> Any:
        client = dict(installed.cluster.request("GET", VALIDATING).must()["webhooks"][0]["clientConfig"])
        client["caBundle"] = base64.b64encode(bundle).decode() if bundle else ""
        return changed_webhook(installed, 0, {"clientConfig": client})

    return plant


@contextmanager
def without_endpoint(installed: Installed) -> Iterator[None]:
    cluster, port = installed.cluster, installed.webhook.replicas[0].port
    cluster.withdraw(names.NAMESPACE, names.ADMISSION_SERVICE, port)
    yield
    cluster.expose(names.NAMESPACE, names.ADMISSION_SERVICE, 443, port)


@contextmanager
def dead_replica(installed: Installed) -> Iterator[None]:
    """Kills the replica and leaves it in the Service."""
    (replica,) = installed.webhook.replicas
    replica.program.kill()
    yield
    replica.program.start()
    installed.cluster.wait_until(replica.ready, what="the replica to be ready again")


@contextmanager
def without_extender(installed: Installed) -> Iterator[None]:
    installed.extender.end(installed.extender.replicas[0])
    yield
    installed.extender.add_replica()
    installed.extender.leader()


@contextmanager
def created(installed: Installed, path: str, item: Object) -> Iterator[None]:
    installed.create_at(path, item)
    yield
    installed.remove(f"{path}/{item['metadata']['name']}")


def exempt_pod(item: Object, **fields: Any) -> Planting:
    """Creates a pod in an exempt namespace, without the extender."""
    item["spec"] |= {"schedulerName": names.DEFAULT_SCHEDULER, **fields}
    return lambda installed: created(installed, f"/api/v1/namespaces/{EXEMPT}/pods", item)


def bare(name: str, card: str = "") -> Object:
    """Returns a pod, with a record if a card is named."""
    record = {names.PLACEMENT: json.dumps({"node": NODE, "cards": {"containers-0": [card]}})} if card else {}
    limits = {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}
    return complete(pod(name).container(limits=limits, requests=limits).annotated(record))


def never_counted(installed: Installed) -> Any:
    quota = resource_quota("idle", {f"limits.{names.VCUDA_CORE}": "100"})
    return created(installed, f"/api/v1/namespaces/{EXEMPT}/resourcequotas", quota)


def expired(installed: Installed) -> Any:
    since = datetime.now(UTC) - timedelta(days=100)
    pem = leaf(authority(since), "halfcard", since).pem
    item = {"metadata": {"name": names.EXTENDER_TLS}, "data": {"tls.crt": base64.b64encode(pem).decode()}}
    return created(installed, f"{HERE}/secrets", item)


@contextmanager
def labelled_node(installed: Installed) -> Iterator[None]:
    """Adds a node with the agent's label, where no agent starts."""
    installed.cluster.add_node("bare", {names.VCUDA_CORE: "100"}, {names.AGENT_LABEL: "true"})
    yield
    installed.remove("/api/v1/nodes/bare")
    installed.cluster.wait_until(lambda: _pods_are_gone(installed, "bare"), what="the pod of that node to be gone")


def _pods_are_gone(installed: Installed, node: str) -> bool:
    """Deletes the pods of a deleted node, which Kubernetes does only after minutes; true once they are gone."""
    pods = installed.cluster.request("GET", f"{HERE}/pods").must()["items"]
    left = [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName") == node]
    for name in left:
        installed.cluster.request("DELETE", f"{HERE}/pods/{name}", {"gracePeriodSeconds": 0})
    return not left


@contextmanager
def peers_node(installed: Installed) -> Iterator[None]:
    installed.cluster.add_node("others", {names.NVIDIA_GPU: "1"})
    yield
    installed.remove("/api/v1/nodes/others")


@contextmanager
def sick_card(installed: Installed) -> Iterator[None]:
    installed.announce(CARDS[0], replace(CARDS[1], why_not="Xid 79"))
    yield
    installed.announce(*CARDS)


@contextmanager
def empty_allocatable(installed: Installed) -> Iterator[None]:
    """Sets allocatable to zero, as kubelet does if a device plugin is gone."""
    installed.merge(
        f"/api/v1/nodes/{NODE}/status", {"status": {"allocatable": {names.VCUDA_CORE: "0", names.VCUDA_MEMORY: "0"}}}
    )
    yield
    amounts = {resource: installed.node()["status"]["capacity"][resource] for resource in SETTINGS["node_resources"]}
    installed.merge(f"/api/v1/nodes/{NODE}/status", {"status": {"allocatable": amounts}})


@contextmanager
def not_offered_event(installed: Installed) -> Iterator[None]:
    not_offered = NodeEvent("NotOffered", f"{names.VCUDA_CORE}: another plugin serves it")
    event = json.loads(node_event(installed.node(), not_offered, datetime.now(UTC)))
    installed.create_at(EVENTS_PATH, event)
    yield
    installed.remove(f"{EVENTS_PATH}/{event['metadata']['name']}")


@contextmanager
def peer_plugin(installed: Installed) -> Iterator[None]:
    item = daemon("gpu-manager-daemonset", account="default", image="example.invalid/tkestack/gpu-manager:v1.1.5")
    with created(installed, f"/apis/apps/v1/namespaces/{TEAM}/daemonsets", item):
        yield


def plain_scheduler(installed: Installed) -> Any:
    item = complete(
        pod("kube-scheduler").container(command=["kube-scheduler"]).labelled({"component": "kube-scheduler"})
    )
    item["spec"]["schedulerName"] = "no-scheduler"
    return created(installed, f"/api/v1/namespaces/{EXEMPT}/pods", item)


def trusting_scheduler(installed: Installed) -> Any:
    """A scheduler with the shipped configuration, but without caFile."""
    shipped = yaml.safe_load((ROOT / "deploy" / "scheduler" / "halfcard.yaml").read_text())
    del shipped["extenders"][0]["tlsConfig"]["caFile"]
    item = complete(
        pod("kube-scheduler")
        .container(command=["kube-scheduler", "--config=/c/s.yaml"], volumeMounts=[{"name": "c", "mountPath": "/c"}])
        .labelled({"component": "kube-scheduler"})
        .specified(volumes=[{"name": "c", "configMap": {"name": "scheduler"}}], schedulerName="no-scheduler")
    )
    config_map = {"metadata": {"name": "scheduler"}, "data": {"s.yaml": yaml.safe_dump(shipped)}}
    both = ExitStack()
    both.enter_context(created(installed, f"/api/v1/namespaces/{EXEMPT}/configmaps", config_map))
    both.enter_context(created(installed, f"/api/v1/namespaces/{EXEMPT}/pods", item))
    return both


def stopped_certificate_controller(installed: Installed) -> Any:
    item = workload("Deployment", names.CERTS_SERVICE, complete(pod("certs").container()))
    item["spec"]["replicas"] = 0
    item["spec"]["template"]["spec"]["serviceAccountName"] = names.CERTS_SERVICE
    item["spec"]["template"]["spec"]["containers"][0]["image"] = IMAGE
    return created(installed, f"/apis/apps/v1/namespaces/{names.NAMESPACE}/deployments", item)


@contextmanager
def garbage_ledger(installed: Installed) -> Iterator[None]:
    ledger = f"{HERE}/configmaps/gpuquota.{TEAM}.gpu"
    installed.merge(ledger, {"data": {"ledger": "garbage"}})
    yield
    installed.remove(ledger)


def default_ledger(installed: Installed) -> Any:
    """Creates the broken ledger of a default quota."""
    item = {"metadata": {"name": f"defaultgpuquota.{TEAM}.all"}, "data": {"ledger": "garbage"}}
    return created(installed, f"{HERE}/configmaps", item)


@contextmanager
def no_definition(installed: Installed) -> Iterator[None]:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{names.CLUSTER_GPU_QUOTAS}.{names.OWN_DOMAIN}"
    before = installed.cluster.request("GET", path).must()
    installed.remove(path)
    installed.cluster.wait_until(lambda: installed.gone(path), what="the definition to be gone")
    yield
    metadata = {key: before["metadata"][key] for key in ("name", "annotations") if key in before["metadata"]}
    installed.create_at(path.rpartition("/")[0], {**before, "metadata": metadata, "status": None})


# --- Halfcard's own processes and nodes ------------------------------------------------------------------------------


@contextmanager
def stuck(installed: Installed, state: Object) -> Iterator[None]:
    """Creates a pod of the extender that no node runs, with the status that kubelet would write."""
    item = complete(pod("stuck").container())
    item["spec"] |= {"schedulerName": "no-scheduler", "serviceAccountName": names.EXTENDER_SERVICE}
    with created(installed, f"{HERE}/pods", item):
        status = {"name": "containers-0", "image": IMAGE, "imageID": "", "ready": False, "restartCount": 0, **state}
        installed.merge(f"{HERE}/pods/stuck/status", {"status": {"containerStatuses": [status]}})
        yield


def without_image(installed: Installed) -> Any:
    return stuck(installed, {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}})


def crashing(installed: Installed) -> Any:
    ended = {"exitCode": 2, "reason": "Error", "startedAt": None, "finishedAt": None}
    state = {"restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    return stuck(installed, {**state, "lastState": {"terminated": ended}})


@contextmanager
def without_rights(installed: Installed) -> Iterator[None]:
    """Deletes the binding of the agent, and then does what the doctor says."""
    installed.remove(f"{RIGHTS}/clusterrolebindings/{names.AGENT}")
    yield
    do_as_the_doctor_says(installed)


def do_as_the_doctor_says(installed: Installed) -> None:
    (found,) = json.loads(installed.run_doctor("-o", "json")[1])["findings"]
    words = shlex.split(found["command"])
    assert words[0] == "kubectl"
    done = kubectl(installed, *words[1:])
    assert done.code == 0, done.stderr


@contextmanager
def refused_pods(installed: Installed) -> Iterator[None]:
    """Allows no pod more in the namespace than those that run, and adds a Deployment."""
    quota = {"metadata": {"name": "tight"}, "spec": {"hard": {"pods": "1"}}}
    item = workload("Deployment", names.EXTENDER_SERVICE, complete(pod("extender").container()))
    item["spec"]["template"]["spec"] |= {"serviceAccountName": names.EXTENDER_SERVICE}
    item["spec"]["template"]["spec"]["containers"][0]["image"] = IMAGE
    with (
        created(installed, f"{HERE}/resourcequotas", quota),
        created(installed, f"/apis/apps/v1/namespaces/{names.NAMESPACE}/deployments", item),
        created(installed, f"{HERE}/services", extender_service()),
    ):
        yield


def extender_service() -> Object:
    return {"metadata": {"name": names.EXTENDER_SERVICE}, "spec": {"ports": [{"port": names.EXTENDER_PORT}]}}


@contextmanager
def tainted_node(installed: Installed) -> Iterator[None]:
    installed.cluster.add_node("tainted", {}, {})
    path, taint = "/api/v1/nodes/tainted", {"key": "dedicated", "value": "research", "effect": "NoSchedule"}
    installed.merge(path, {"spec": {"taints": [taint]}})
    installed.merge(path, {"metadata": {"labels": {names.AGENT_LABEL: "true"}}})
    yield
    installed.remove(path)


@contextmanager
def mislabelled_node(installed: Installed) -> Iterator[None]:
    installed.cluster.add_node("odd", {}, {names.AGENT_LABEL: "yes"})
    yield
    installed.remove("/api/v1/nodes/odd")


@contextmanager
def wrong_clock(installed: Installed) -> Iterator[None]:
    installed.cluster.add_node("late", {}, {})
    renewed = f"{datetime.now(UTC) + timedelta(minutes=5):%Y-%m-%dT%H:%M:%S.%fZ}"
    item = {"metadata": {"name": "late"}, "spec": {"holderIdentity": "late", "renewTime": renewed}}
    with created(installed, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", item):
        yield
    installed.remove("/api/v1/nodes/late")


@contextmanager
def edited_settings(installed: Installed) -> Iterator[None]:
    """Changes the settings, and then changes them back: the agent's pod has read those."""
    path = f"{HERE}/configmaps/{names.SETTINGS_MAP}"
    before = installed.cluster.request("GET", path).must()["data"]
    edited = {**json.loads(before["settings.yaml"]), "packing": "spread"}
    installed.merge(path, {"data": {"settings.yaml": json.dumps(edited)}})
    yield
    installed.merge(path, {"data": before})


@contextmanager
def misspelled_settings(installed: Installed) -> Iterator[None]:
    path = f"{HERE}/configmaps/{names.SETTINGS_MAP}"
    before = installed.cluster.request("GET", path).must()["data"]
    installed.merge(path, {"data": {"settings.yaml": "pakcing: spread"}})
    yield
    installed.merge(path, {"data": before})


def elsewhere(installed: Installed) -> Any:
    item = workload("Deployment", names.ADMISSION_SERVICE, complete(pod("other").container()))
    item["spec"]["replicas"] = 0
    item["spec"]["template"]["spec"]["serviceAccountName"] = names.ADMISSION_SERVICE
    return created(installed, f"/apis/apps/v1/namespaces/{TEAM}/deployments", item)


RIGHTS: Final = "/apis/rbac.authorization.k8s.io/v1"
OTHER: Final = authority(datetime.now(UTC) - timedelta(days=1)).pem
FAULTS: Final[dict[str, tuple[Planting, str, str]]] = {
    "the validating configuration is deleted": (
        unregistered,
        "webhook-missing",
        "ValidatingWebhookConfiguration halfcard: no webhook",
    ),
    "it fails open": (
        lambda installed: changed_webhook(installed, 0, {"failurePolicy": "Ignore"}),
        "webhook-differs",
        "failurePolicy: Ignore",
    ),
    "its caBundle is blanked": (trusting(None), "ca-bundle-empty", "1 webhook (validate-pods.halfcard.dev)"),
    "its caBundle is garbage": (trusting(b"garbage"), "ca-bundle-garbage", "no certificate can be read"),
    "its caBundle is of another CA": (trusting(OTHER), "webhook-distrusted", "x509: certificate signed by unknown"),
    "no replica of the webhook is ready": (without_endpoint, "service-empty", names.ADMISSION_SERVICE),
    "a replica of the webhook is dead": (dead_replica, "webhook-unreachable", "connection refused"),
    "a certificate has ended": (expired, "certificate-expired", names.EXTENDER_TLS),
    "the extender has ended": (without_extender, "extender-not-led", "no replica holds it"),
    "the scheduler has no configuration": (plain_scheduler, "scheduler-without-extender", "kube-system/kube-scheduler"),
    "the scheduler does not verify the extender": (
        trusting_scheduler,
        "scheduler-misconfigured",
        "called by HTTPS without caFile",
    ),
    "the certificate controller is scaled to zero": (
        stopped_certificate_controller,
        "scaled-to-zero",
        "halfcard-certs: it is scaled to zero",
    ),
    "a pod was bound past the extender": (
        exempt_pod(bare("past"), nodeName=NODE),
        "scheduler-past-extender",
        "kube-system/past",
    ),
    "a pod forged a record before it was bound": (
        exempt_pod(bare("forged", card="GPU-0"), nodeSelector={"no": "node"}),
        "record-forged",
        names.PLACEMENT,
    ),
    "a record names a card that the node lacks": (
        exempt_pod(bare("lost", card="GPU-9"), nodeName=NODE),
        "record-doubtful",
        "names cards that the node does not have",
    ),
    "a node has the agent's label and no agent": (labelled_node, "agent-missing", "node bare"),
    "a node has GPUs and another system's agent": (peers_node, "node-without-agent", "1 node (others)"),
    "a card is sick": (sick_card, "cards-out-of-order", "Xid 79"),
    "kubelet offers nothing of ours": (empty_allocatable, "agent-unregistered", NODE),
    "another plugin has our resource": (not_offered_event, "not-offered", "another plugin serves it"),
    "gpu-manager's plugin is on our node": (peer_plugin, "peer-plugin", f"1 node ({NODE})"),
    "a quota never counts": (never_counted, "quota-uncounted", f"limits.{names.VCUDA_CORE}"),
    "a ledger is garbage": (garbage_ledger, "ledger-broken", "is not a valid ledger"),
    "the ledger of a default is garbage": (default_ledger, "ledger-broken", "is not a valid ledger"),
    "an image is not on its node": (without_image, "image-missing", f"ImagePullBackOff: {IMAGE}: not found"),
    "a process crashes": (crashing, "process-crashes", "ended after 4 restarts: exit code 2"),
    "the agent has lost its rights": (without_rights, "right-missing", "it may not list and watch and patch nodes"),
    "a ResourceQuota refuses pods of ours": (refused_pods, "pods-not-created", "exceeded quota: tight"),
    "a taint keeps the agent off its node": (tainted_node, "agent-missing", "dedicated=research:NoSchedule"),
    "the label of the agent is misspelled": (mislabelled_node, "agent-label", f"{names.AGENT_LABEL}=yes"),
    "the clock of a node is wrong": (wrong_clock, "clock-skew", "ahead of that of the API server"),
    "the settings were edited": (edited_settings, "settings-outdated", "1 pod (halfcard-agent-"),
    "the settings have a typing error": (misspelled_settings, "settings-unusable", "pakcing"),
    "a second installation is in another namespace": (elsewhere, "installed-elsewhere", f"Deployment {TEAM}/"),
    "a definition is gone": (no_definition, "crd-missing", names.CLUSTER_GPU_QUOTAS),
}


@pytest.mark.parametrize(("plant", "check", "expected"), FAULTS.values(), ids=FAULTS.keys())
def test_a_planted_fault_is_found_and_nothing_else(
    installed: Installed, plant: Planting, check: str, expected: str
) -> None:
    with plant(installed):
        findings = installed.wait_for_findings(check)
    assert expected in findings[check]
    installed.wait_for_findings()


def test_an_exempt_namespace_is_found_to_admit_bad_pods(installed: Installed) -> None:
    code, printed = installed.run_doctor("--namespace", EXEMPT, "-o", "json")
    assert code == 1
    assert [each["check"] for each in json.loads(printed)["findings"]] == ["webhook-lets-pass"]


def test_without_an_installation_it_prints_one_line(cluster: Cluster) -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        code = halfcard(["doctor", "--kubeconfig", str(cluster.admin.kubeconfig)])
    assert (code, out.getvalue().count("\n")) == (5, 1)
    assert out.getvalue().startswith("Not installed: ")


def test_it_waits_until_a_fault_is_repaired(installed: Installed) -> None:
    kubeconfig = str(installed.cluster.admin.kubeconfig)
    with never_counted(installed):
        assert installed.run_doctor("--wait", "0")[0] == 1
        waiting = subprocess.Popen(
            [sys.executable, "-m", "cli", "doctor", "--kubeconfig", kubeconfig, "--wait", str(TIMEOUT_S)],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert waiting.stderr is not None
        assert any(": 1 broken, 0 warnings, 0 notes: quota-uncounted" in line for line in waiting.stderr)
    out, _ = waiting.communicate(timeout=TIMEOUT_S)
    assert waiting.returncode == 0, out


# --- the scheduler ---------------------------------------------------------------------------------------------------


@contextmanager
def scheduled(installed: Installed, change: Callable[[Object], object]) -> Iterator[None]:
    """Runs the scheduler with a change of its extenders until the block ends."""
    configuration = installed.extender.recommended()
    change(configuration)
    installed.extender.schedule_by(configuration)
    yield
    installed.extender.schedule_by(installed.extender.recommended())


@contextmanager
def running_pod(installed: Installed, namespace: str, item: Object) -> Iterator[str]:
    """Creates a pod, waits until it runs, and deletes it after the block."""
    path = f"/api/v1/namespaces/{namespace}/pods/{item['metadata']['name']}"
    with created(installed, path.rpartition("/")[0], item):
        installed.cluster.wait_until(lambda: is_ready(installed.cluster.request("GET", path).must()), what=path)
        yield path


BYPASSES: Final[dict[str, Callable[[Object], object]]] = {
    "without the extender": lambda configuration: configuration.pop("extenders"),
    "without the resource": lambda configuration: configuration["extenders"][0].update(
        managedResources=[{"name": names.NVIDIA_GPU}]
    ),
}


@pytest.mark.parametrize("change", BYPASSES.values(), ids=BYPASSES)
def test_a_scheduler_that_bypasses_the_extender_is_found_although_the_agent_recorded_the_cards(
    installed: Installed, change: Callable[[Object], object]
) -> None:
    item = bare("past")
    item["spec"]["schedulerName"] = names.DEFAULT_SCHEDULER
    with ExitStack() as created_pods:
        with scheduled(installed, change):
            path = created_pods.enter_context(running_pod(installed, EXEMPT, item))
            record = {"node": NODE, "cards": {"containers-0": ["GPU-1"]}, "by": RecordWriter.AGENT}
            installed.merge(path, {"metadata": {"annotations": {names.PLACEMENT: json.dumps(record)}}})
            findings = installed.wait_for_findings("scheduler-past-extender")
        assert "kube-system/past" in findings["scheduler-past-extender"]
        assert "its node's agent chose its cards" in findings["scheduler-past-extender"]
        created_pods.enter_context(running_pod(installed, TEAM, share("next")))
        installed.wait_for_findings()


def trusting_another_ca(installed: Installed) -> Mapping[str, str]:
    file = installed.cluster.folder / "another-ca.crt"
    file.write_bytes(OTHER)
    return {"caFile": str(file)}


def with_an_expired_certificate(installed: Installed) -> Mapping[str, str]:
    pair = installed.cluster.authority.client("expired", name="system:kube-scheduler", groups=[], life=timedelta())
    return {"certFile": str(pair.certificate), "keyFile": str(pair.key)}


UNREACHABLE: Final[dict[str, tuple[Callable[[Installed], Mapping[str, str]], str, str]]] = {
    "it trusts another CA": (
        trusting_another_ca,
        "x509: certificate signed by unknown authority",
        "caFile is of another CA",
    ),
    "its certificate has expired": (
        with_an_expired_certificate,
        "client certificate expired",
        f"copy the Secret {names.SCHEDULER_TLS} again",
    ),
}


@pytest.mark.parametrize(("files", "got", "fix"), UNREACHABLE.values(), ids=UNREACHABLE)
def test_a_scheduler_that_cannot_call_the_extender_is_found_with_the_fix(
    installed: Installed, files: Callable[[Installed], Mapping[str, str]], got: str, fix: str
) -> None:
    tls = files(installed)
    with ExitStack() as pods:
        with scheduled(installed, lambda configuration: configuration["extenders"][0]["tlsConfig"].update(tls)):
            pods.enter_context(created(installed, f"/api/v1/namespaces/{TEAM}/pods", share("waits")))
            installed.cluster.wait_until(
                lambda: got in installed.first_findings().get("scheduler-cannot-call", ""),
                what=f"the doctor to find {got}",
                seconds=TIMEOUT_S,
                details=lambda: str(installed.first_findings()),
            )
            (finding,) = json.loads(installed.run_doctor("-o", "json")[1])["findings"]
            assert fix in finding["fix"]
        installed.wait_for_findings()
    installed.wait_for_findings()


# --- users and rights ------------------------------------------------------------------------------------------------


def test_a_user_with_few_rights_learns_what_was_not_checked(installed: Installed) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]}]
    role = {"metadata": {"name": "looker"}, "rules": rules}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "looker"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looker"}
    binding = {"metadata": {"name": "looker"}, "roleRef": reference, "subjects": [subject]}
    installed.create_at(f"{RIGHTS}/clusterroles", role)
    installed.create_at(f"{RIGHTS}/clusterrolebindings", binding)
    looker = installed.cluster.users.by_certificate("looker")
    report: dict[str, Any] = {}

    def succeeds() -> bool:
        code, printed = installed.run_doctor("-o", "json", user=looker)
        report.update(json.loads(printed) if code == 0 else {})
        return code == 0

    installed.cluster.wait_until(succeeds, what="the rights to be in force")
    assert {each["check"] for each in report["findings"]} == {"not-looked-at"}
    assert "POST /api/v1/namespaces/default/pods" in {each["where"] for each in report["findings"]}


def test_a_tenant_cannot_run_the_doctor(installed: Installed) -> None:
    assert installed.run_doctor(user=installed.cluster.tenant(TEAM))[0] == 2


# --- the plugin of kubectl -------------------------------------------------------------------------------------------


def kubectl(installed: Installed, *arguments: str) -> CommandResult:
    """Runs kubectl with the commands of this installation on PATH and the cluster in KUBECONFIG."""
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(
        [str(program_path("kubectl")), *arguments],
        env={
            "PATH": path,
            "HOME": str(installed.cluster.folder),
            "KUBECONFIG": str(installed.cluster.admin.kubeconfig),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


def test_kubectl_finds_its_plugin(installed: Installed) -> None:
    done = kubectl(installed, "halfcard", "inspect")
    assert done.code == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["NODE", "CARDS", "CORES", "%", "MEMORY", "MiB", "PODS"]
    assert NODE in done.stdout
    assert "kubectl-halfcard" in kubectl(installed, "plugin", "list").stdout


def test_the_kubectl_plugin_returns_the_exit_code(installed: Installed) -> None:
    assert kubectl(installed, "halfcard", "doctor").code == 0
    with never_counted(installed):
        assert kubectl(installed, "halfcard", "doctor").code == 1


@pytest.mark.parametrize("command", ["inspect", "explain", "quota", "top", "review", "certs", "doctor"])
def test_every_command_shows_its_usage_under_the_name_of_the_plugin(installed: Installed, command: str) -> None:
    done = kubectl(installed, "halfcard", command, "--help")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: kubectl halfcard {command}")
