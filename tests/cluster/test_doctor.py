"""`halfcard doctor` on a real control plane: nothing where nothing is wrong, and each planted fault as what it is."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import subprocess
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
import yaml

from cli.__main__ import main as halfcard
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
from kube.api.access import from_kubeconfig
from kube.api.calls import ApiCalls
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
SECONDS: Final = 60
HERE: Final = f"/api/v1/namespaces/{names.NAMESPACE}"


@dataclass
class Installed:
    """All of Halfcard's processes, and one node with an agent's words, and kwok's pod in place of the agent."""

    webhook: Installation
    quotas: QuotaInstallation
    extender: ExtenderInstallation
    said: Any = field(default=None)

    @property
    def cluster(self) -> Cluster:
        return self.webhook.cluster

    # --- the doctor ---------------------------------------------------------------------------------------------------

    def ask(self, *arguments: str, user: User | None = None) -> tuple[int, str]:
        out = io.StringIO()
        kubeconfig = (user or self.cluster.admin).kubeconfig
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            code = halfcard(["doctor", "--kubeconfig", str(kubeconfig), *arguments])
        return code, out.getvalue()

    def found(self) -> dict[str, str]:
        """By check, where and what, of its first finding."""
        findings = json.loads(self.ask("-o", "json")[1])["findings"]
        return {each["check"]: f"{each['where']}: {each['got']}" for each in reversed(findings)}

    def wait_found(self, *checks: str) -> dict[str, str]:
        """Until exactly these are found: configurations and endpoints are known to the API server a moment later."""
        self.cluster.wait_until(
            lambda: sorted(self.found()) == sorted(checks),
            what=f"the doctor to find {checks or 'nothing'}",
            seconds=SECONDS,
            details=lambda: str(self.found()),
        )
        return self.found()

    # --- the installation ---------------------------------------------------------------------------------------------

    def announce(self, *cards: Card) -> None:
        """As the node's agent does."""
        asyncio.run(self._announced(cards))

    async def _announced(self, cards: tuple[Card, ...]) -> None:
        calls = ApiCalls(from_kubeconfig(self.cluster.admin.kubeconfig))
        announcing = NodeWriter(calls, NODE, Log(), lambda: datetime.now(UTC))
        wanted = announcement(cards, {})
        running = asyncio.create_task(announcing.run())
        announcing.announce(wanted)
        async with asyncio.timeout(SECONDS):
            while not self._says(
                there := await asyncio.to_thread(self.node), wanted.inventory, wanted.condition.reason
            ):
                announcing.observe(there)
                await asyncio.sleep(0.1)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        calls.close()

    @staticmethod
    def _says(node: Object, inventory: str | None, reason: str) -> bool:
        conditions = {each["type"]: each.get("reason") for each in node["status"]["conditions"]}
        written = node["metadata"].get("annotations", {}).get(names.INVENTORY)
        return bool(written == inventory and conditions.get(names.CARDS_CONDITION) == reason)

    def node(self) -> Object:
        found: Object = self.cluster.request("GET", f"/api/v1/nodes/{NODE}").must()
        return found

    def create(self, namespace: str, item: Object) -> None:
        self.webhook.create(namespace, item).must()

    def make(self, path: str, item: Object) -> None:
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
        there = Installed(webhook, quotas, extender)
        _settle(there)
        yield there


def _settle(there: Installed) -> None:
    """Settings as the processes have them, a node with an agent, a budget, a quota that counts, and a pod that runs."""
    cluster, text = there.cluster, there.webhook.settings.read_text()
    metadata = {"name": names.SETTINGS_MAP}
    there.make(f"{HERE}/configmaps", {"metadata": metadata, "data": {"settings.yaml": text}})
    cluster.add_gpu_nodes([GpuNodes(1, "Tesla-T4", 15360, cards=2)])
    there.merge(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {names.AGENT_LABEL: "true"}}})
    there.announce(*CARDS)
    there.create(names.NAMESPACE, daemon(names.AGENT, account=names.AGENT, image="halfcard.dev/halfcard:1"))
    cluster.wait_until(lambda: _is_ready(there, names.NAMESPACE), what="kwok to run the agent's pod")
    cluster.create_namespace(TEAM)
    there.quotas.wait_led()
    there.quotas.allow(TEAM, hard={"cores": 150, "memory": "64Gi"})
    there.create(TEAM, resource_quota("counts", {f"limits.{names.VCUDA_CORE}": "300"}))
    there.create(TEAM, share("work"))
    cluster.wait_until(lambda: _is_ready(there, TEAM), what="a pod with a card to run")


def _is_ready(there: Installed, namespace: str) -> bool:
    pods = there.cluster.request("GET", f"/api/v1/namespaces/{namespace}/pods").must()["items"]
    return bool(pods) and all(is_ready(each) for each in pods)


def daemon(name: str, *, account: str, image: str) -> Object:
    """On nodes with the agent's label."""
    item = workload("DaemonSet", name, complete(pod(name).container()))
    spec = item["spec"]["template"]["spec"]
    spec |= {"nodeSelector": {names.AGENT_LABEL: "true"}, "serviceAccountName": account}
    spec["containers"][0]["image"] = image
    return item


def test_a_healthy_installation_has_no_findings(installed: Installed) -> None:
    installed.wait_found()
    code, printed = installed.ask("--strict")
    assert code == 0
    assert printed.startswith("Nothing is wrong: ") and printed.count("\n") == 1


# --- planted faults --------------------------------------------------------------------------------------------------

Planting = Callable[[Installed], Any]


@contextmanager
def unregistered(there: Installed) -> Iterator[None]:
    there.remove(VALIDATING)
    yield
    there.webhook.register()


@contextmanager
def changed_webhook(there: Installed, number: int, change: Mapping[str, Any]) -> Iterator[None]:
    """Of the validating ones, one field or more; `register` alone would not put back what `apply` does not name."""
    before = there.cluster.request("GET", VALIDATING).must()["webhooks"]
    after = [{**each, **(change if at == number else {})} for at, each in enumerate(before)]
    there.merge(VALIDATING, {"webhooks": after})
    yield
    there.merge(VALIDATING, {"webhooks": before})


def trusting(bundle: bytes | None) -> Planting:
    def plant(there: Installed) -> Any:
        client = dict(there.cluster.request("GET", VALIDATING).must()["webhooks"][0]["clientConfig"])
        client["caBundle"] = base64.b64encode(bundle).decode() if bundle else ""
        return changed_webhook(there, 0, {"clientConfig": client})

    return plant


@contextmanager
def without_endpoint(there: Installed) -> Iterator[None]:
    cluster, port = there.cluster, there.webhook.replicas[0].port
    cluster.withdraw(names.NAMESPACE, names.ADMISSION_SERVICE, port)
    yield
    cluster.expose(names.NAMESPACE, names.ADMISSION_SERVICE, 443, port)


@contextmanager
def dead_replica(there: Installed) -> Iterator[None]:
    """The Service has not heard of it."""
    (replica,) = there.webhook.replicas
    replica.program.kill()
    yield
    replica.program.start()
    there.cluster.wait_until(replica.ready, what="the replica to be ready again")


@contextmanager
def without_extender(there: Installed) -> Iterator[None]:
    there.extender.end(there.extender.replicas[0])
    yield
    there.extender.add_replica()
    there.extender.leader()


@contextmanager
def made(there: Installed, path: str, item: Object) -> Iterator[None]:
    there.make(path, item)
    yield
    there.remove(f"{path}/{item['metadata']['name']}")


def exempt_pod(item: Object, **fields: Any) -> Planting:
    """Past the webhook, and past the scheduler."""
    item["spec"] |= {"schedulerName": names.DEFAULT_SCHEDULER, **fields}
    return lambda there: made(there, f"/api/v1/namespaces/{EXEMPT}/pods", item)


def bare(name: str, card: str = "") -> Object:
    """With a record of a card, where one is named."""
    record = {names.PLACEMENT: json.dumps({"node": NODE, "cards": {"containers-0": [card]}})} if card else {}
    limits = {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}
    return complete(pod(name).container(limits=limits, requests=limits).annotated(record))


def never_counted(there: Installed) -> Any:
    quota = resource_quota("idle", {f"limits.{names.VCUDA_CORE}": "100"})
    return made(there, f"/api/v1/namespaces/{EXEMPT}/resourcequotas", quota)


def expired(there: Installed) -> Any:
    since = datetime.now(UTC) - timedelta(days=100)
    pem = leaf(authority(since), "halfcard", since).pem
    item = {"metadata": {"name": names.EXTENDER_TLS}, "data": {"tls.crt": base64.b64encode(pem).decode()}}
    return made(there, f"{HERE}/secrets", item)


@contextmanager
def labelled_node(there: Installed) -> Iterator[None]:
    """Where no agent starts."""
    there.cluster.add_node("bare", {names.VCUDA_CORE: "100"}, {names.AGENT_LABEL: "true"})
    yield
    there.remove("/api/v1/nodes/bare")
    there.cluster.wait_until(lambda: _swept(there, "bare"), what="the pod of that node to be gone")


def _swept(there: Installed, node: str) -> bool:
    """Nobody else ends a pod whose node is gone, for minutes."""
    pods = there.cluster.request("GET", f"{HERE}/pods").must()["items"]
    left = [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName") == node]
    for name in left:
        there.cluster.request("DELETE", f"{HERE}/pods/{name}", {"gracePeriodSeconds": 0})
    return not left


@contextmanager
def others_node(there: Installed) -> Iterator[None]:
    there.cluster.add_node("others", {names.NVIDIA_GPU: "1"})
    yield
    there.remove("/api/v1/nodes/others")


@contextmanager
def sick_card(there: Installed) -> Iterator[None]:
    there.announce(CARDS[0], replace(CARDS[1], why_not="Xid 79"))
    yield
    there.announce(*CARDS)


@contextmanager
def offering_nothing(there: Installed) -> Iterator[None]:
    """As kubelet leaves a node whose plugin has gone."""
    there.merge(
        f"/api/v1/nodes/{NODE}/status", {"status": {"allocatable": {names.VCUDA_CORE: "0", names.VCUDA_MEMORY: "0"}}}
    )
    yield
    amounts = {resource: there.node()["status"]["capacity"][resource] for resource in SETTINGS["node_resources"]}
    there.merge(f"/api/v1/nodes/{NODE}/status", {"status": {"allocatable": amounts}})


@contextmanager
def told_not_offered(there: Installed) -> Iterator[None]:
    happening = NodeEvent("NotOffered", f"{names.VCUDA_CORE}: another plugin serves it")
    event = json.loads(node_event(there.node(), happening, datetime.now(UTC)))
    there.make(EVENTS_PATH, event)
    yield
    there.remove(f"{EVENTS_PATH}/{event['metadata']['name']}")


@contextmanager
def peers_plugin(there: Installed) -> Iterator[None]:
    item = daemon("gpu-manager-daemonset", account="default", image="example.invalid/tkestack/gpu-manager:v1.1.5")
    with made(there, f"/apis/apps/v1/namespaces/{TEAM}/daemonsets", item):
        yield


def plain_scheduler(there: Installed) -> Any:
    item = complete(
        pod("kube-scheduler").container(command=["kube-scheduler"]).labelled({"component": "kube-scheduler"})
    )
    item["spec"]["schedulerName"] = "nobody"
    return made(there, f"/api/v1/namespaces/{EXEMPT}/pods", item)


def trusting_scheduler(there: Installed) -> Any:
    """As the one that we ship, but for the line that says whom it believes."""
    shipped = yaml.safe_load((ROOT / "deploy" / "scheduler" / "halfcard.yaml").read_text())
    del shipped["extenders"][0]["tlsConfig"]["caFile"]
    item = complete(
        pod("kube-scheduler")
        .container(command=["kube-scheduler", "--config=/c/s.yaml"], volumeMounts=[{"name": "c", "mountPath": "/c"}])
        .labelled({"component": "kube-scheduler"})
        .specified(volumes=[{"name": "c", "configMap": {"name": "scheduler"}}], schedulerName="nobody")
    )
    config_map = {"metadata": {"name": "scheduler"}, "data": {"s.yaml": yaml.safe_dump(shipped)}}
    both = ExitStack()
    both.enter_context(made(there, f"/api/v1/namespaces/{EXEMPT}/configmaps", config_map))
    both.enter_context(made(there, f"/api/v1/namespaces/{EXEMPT}/pods", item))
    return both


def resting_keeper(there: Installed) -> Any:
    item = workload("Deployment", names.CERTS_SERVICE, complete(pod("certs").container()))
    item["spec"]["replicas"] = 0
    item["spec"]["template"]["spec"]["serviceAccountName"] = names.CERTS_SERVICE
    return made(there, f"/apis/apps/v1/namespaces/{names.NAMESPACE}/deployments", item)


@contextmanager
def garbage_ledger(there: Installed) -> Iterator[None]:
    ledger = f"{HERE}/configmaps/gpuquota.{TEAM}.gpu"
    there.merge(ledger, {"data": {"ledger": "garbage"}})
    yield
    there.remove(ledger)


def default_ledger(there: Installed) -> Any:
    """As a namespace without a quota of its own has one."""
    item = {"metadata": {"name": f"defaultgpuquota.{TEAM}.all"}, "data": {"ledger": "garbage"}}
    return made(there, f"{HERE}/configmaps", item)


@contextmanager
def no_definition(there: Installed) -> Iterator[None]:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{names.CLUSTER_GPU_QUOTAS}.{names.OWN_DOMAIN}"
    before = there.cluster.request("GET", path).must()
    there.remove(path)
    there.cluster.wait_until(lambda: there.gone(path), what="the definition to be gone")
    yield
    kept = {key: before["metadata"][key] for key in ("name", "annotations") if key in before["metadata"]}
    there.make(path.rpartition("/")[0], {**before, "metadata": kept, "status": None})


OTHER: Final = authority(datetime.now(UTC) - timedelta(days=1)).pem
FAULTS: Final[dict[str, tuple[Planting, str, str]]] = {
    "the validating configuration is deleted": (
        unregistered,
        "webhook-missing",
        "ValidatingWebhookConfiguration halfcard: no webhook",
    ),
    "it fails open": (
        lambda there: changed_webhook(there, 0, {"failurePolicy": "Ignore"}),
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
    "the scheduler believes whoever answers for the extender": (
        trusting_scheduler,
        "scheduler-misconfigured",
        "called by HTTPS without caFile",
    ),
    "the certificate controller is scaled to zero": (
        resting_keeper,
        "certificates-unkept",
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
    "a node has GPUs and another system's agent": (others_node, "node-without-agent", "1 node (others)"),
    "a card is sick": (sick_card, "cards-out-of-order", "Xid 79"),
    "kubelet offers nothing of ours": (offering_nothing, "agent-unregistered", NODE),
    "another plugin has our resource": (told_not_offered, "not-offered", "another plugin serves it"),
    "gpu-manager's plugin is on our node": (peers_plugin, "peer-plugin", f"1 node ({NODE})"),
    "a quota never counts": (never_counted, "quota-uncounted", f"limits.{names.VCUDA_CORE}"),
    "a ledger is garbage": (garbage_ledger, "ledger-broken", "is not a valid ledger"),
    "the ledger of a default is garbage": (default_ledger, "ledger-broken", "is not a valid ledger"),
    "a definition is gone": (no_definition, "crd-missing", names.CLUSTER_GPU_QUOTAS),
}


@pytest.mark.parametrize(("plant", "check", "told"), FAULTS.values(), ids=FAULTS.keys())
def test_a_planted_fault_is_found_and_nothing_else(
    installed: Installed, plant: Planting, check: str, told: str
) -> None:
    with plant(installed):
        found = installed.wait_found(check)
    assert told in found[check]
    installed.wait_found()


def test_an_exempt_namespace_is_found_to_admit_bad_pods(installed: Installed) -> None:
    code, printed = installed.ask("--namespace", EXEMPT, "-o", "json")
    assert code == 1
    assert [each["check"] for each in json.loads(printed)["findings"]] == ["webhook-lets-pass"]


# --- who asks, and how -----------------------------------------------------------------------------------------------


def test_a_user_with_few_rights_learns_what_was_not_checked(installed: Installed) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]}]
    role = {"metadata": {"name": "looker"}, "rules": rules}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "looker"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looker"}
    binding = {"metadata": {"name": "looker"}, "roleRef": reference, "subjects": [subject]}
    rights = "/apis/rbac.authorization.k8s.io/v1"
    installed.make(f"{rights}/clusterroles", role)
    installed.make(f"{rights}/clusterrolebindings", binding)
    looker = installed.cluster.users.by_certificate("looker")
    said: dict[str, Any] = {}

    def knows_its_rights() -> bool:
        code, printed = installed.ask("-o", "json", user=looker)
        said.update(json.loads(printed) if code == 0 else {})
        return code == 0

    installed.cluster.wait_until(knows_its_rights, what="the rights to hold")
    assert {each["check"] for each in said["findings"]} == {"not-looked-at"}
    assert "POST /api/v1/namespaces/default/pods" in {each["where"] for each in said["findings"]}


def test_a_tenant_cannot_run_the_doctor(installed: Installed) -> None:
    assert installed.ask(user=installed.cluster.tenant(TEAM))[0] == 2


# --- the plugin of kubectl -------------------------------------------------------------------------------------------


def kubectl(installed: Installed, *arguments: str) -> CommandResult:
    """As people have it: the commands of this installation on PATH, and the cluster in KUBECONFIG."""
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
