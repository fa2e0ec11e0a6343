"""The pages docs/from-*.md on a real control plane: all commands in their order, there and back.

All six systems at once, each with its own nodes and namespace. What happens at kubelet is in
tests/node/test_takeover.py.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cli.__main__ import main as halfcard
from devcluster.build.binaries import program_path
from devcluster.cluster import Cluster
from devcluster.objects import Object
from devcluster.services.extender_installation import ExtenderInstallation
from devcluster.services.installation import Installation
from halfcard import names
from halfcard.cards import Card
from halfcard.inventory import write_inventory
from tests.builders import PodBuilder, pod
from tests.docs.pages import ROOT
from tests.docs.switching import settings as settings_of
from tests.docs.switching import there_and_back

from .load import NO_RATE_LIMITS
from .manifests import complete, workload
from .site import T4_MIB, Site, annotations_of, cards_of, node_of

RECORDED_AT: Final = "1700000000000000000"
OPERATOR: Final = "gpu-operator"
CARDS: Final = 2


@dataclass(frozen=True)
class Program:
    """A DaemonSet or Deployment of the peer, and the label of the nodes where it runs."""

    name: str
    image: str
    label: str = ""


@dataclass(frozen=True)
class Case:
    """A system, and its pods on a node with two cards.

    Attributes:
        system: its name in gpu_nodes.
        running: a pod on the second card, as the peer's scheduler and agent leave it.
        new_pod: a new pod, which gets the first card.
        too_much: a pod that gets no card, and the reason.
        drained: whether the page drains the node.
        is_served: whether the page needs Halfcard's agent before new pods are created; the test imitates it.
    """

    system: str
    running: PodBuilder
    new_pod: PodBuilder
    too_much: tuple[PodBuilder, str]
    plugin: Program
    scheduler: Program | None = None
    drained: bool = False
    is_served: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the running pod's spec."""


def gpu_manager_record(domain: str) -> dict[str, str]:
    return {
        f"{domain}/predicate-gpu-idx-0": "1",
        f"{domain}/predicate-time": RECORDED_AT,
        f"{domain}/gpu-assigned": "true",
    }


CASES: Final = {
    "gpu-manager": Case(
        "gpu-manager",
        pod("earlier").asks(core=60, memory=20).annotated(gpu_manager_record("tencent.com")),
        pod("new").asks(core=50, memory=10),
        (pod("more").asks(core=60, memory=10), "no card has 60 per cent free"),
        Program("gpu-manager-daemonset", "gpu-manager", "nvidia-device-enable=enable"),
        Program("gpu-admission", "gpu-admission"),
    ),
    "gpushare": Case(
        "gpushare",
        pod("earlier").asks(gpu_mem=9).annotated({names.ALIYUN_INDEX: "1", names.ALIYUN_ASSIGNED: "true"}),
        pod("new").asks(gpu_mem=8),
        (pod("more").asks(gpu_mem=8), "no card has 8192 MiB free"),
        Program("gpushare-device-plugin-ds", "k8s-gpushare-plugin", "gpushare=true"),
        Program("gpushare-schd-extender", "k8s-gpushare-schd-extender"),
    ),
    "volcano": Case(
        "volcano",
        pod("earlier").asks(gpu_memory=9000).annotated({names.VOLCANO_INDEX: "1", names.VOLCANO_TIME: RECORDED_AT}),
        pod("new").asks(gpu_memory=8000),
        (pod("more").asks(gpu_memory=8000), "no card has 8000 MiB free"),
        Program("volcano-device-plugin", "volcano-device-plugin"),
        is_served=True,
        fields={"schedulerName": "volcano"},
    ),
    "nvidia-time-slicing": Case(
        "time-slices",
        pod("earlier").asks(gpu_shared=7),
        pod("new").asks(gpu_shared=1),
        (pod("more").asks(gpu_shared=1), "Insufficient nvidia.com/gpu.shared"),
        Program("nvidia-device-plugin-daemonset", "k8s-device-plugin"),
    ),
    "tuya": Case(
        "tuya",
        pod("earlier").asks(tuya_memory=10).annotated(gpu_manager_record("tuya.com")),
        pod("new").asks(sgpu=1),
        (pod("more").asks(sgpu=3), "fewer than 3 cards have a half free"),
        Program("gpu-plugin", "gpu-plugin", "gpu-plugin=true"),
        Program("gpu-extender", "gpu-extender"),
        drained=True,
    ),
    "hami": Case(
        "hami",
        pod("earlier").asks(gpu=1, gpumem=9000).annotated({"hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,9000,0:;"}),
        pod("new").asks(gpu=1, gpumem=8000),
        (pod("more").asks(gpu=3, gpumem=1000), "fewer than 3 cards have"),
        Program("hami-device-plugin", "hami", "gpu=on"),
        Program("hami-scheduler", "hami"),
        drained=True,
        is_served=True,
        fields={"schedulerName": "hami-scheduler"},
    ),
}


@dataclass(frozen=True)
class Move:
    """The switch of one system."""

    name: str
    case: Case
    site: Site
    node: str
    before: Object

    @property
    def cluster(self) -> Cluster:
        return self.site.cluster

    def run(self, script: str) -> str:
        """Runs commands of the page as an administrator."""
        folder = self.cluster.folder / "bin"
        environment = {
            "PATH": f"{folder}{os.pathsep}{program_path('kubectl').parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.cluster.folder),
            "KUBECONFIG": str(self.cluster.admin.kubeconfig),
            "PYTHONPATH": str(ROOT),
            "NODE": self.node,
            "TEAM": self.site.namespace,
        }
        done = subprocess.run(
            ["sh", "-euc", script], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def has_plugin(self) -> bool:
        """Returns whether a pod of the peer's plugin is on the node."""
        items = self.cluster.request("GET", f"/api/v1/namespaces/{names.KUBE_SYSTEM}/pods").must()["items"]
        owners = [owner["name"] for each in items if node_of(each) == self.node for owner in _owners(each)]
        return self.case.plugin.name in owners

    def wait_for_plugin(self, *, running: bool) -> None:
        self.cluster.wait_until(
            lambda: self.has_plugin() is running,
            what=f"{self.case.plugin.name} to {'run' if running else 'end'} on {self.node}",
        )

    def is_reported(self, check: str, installation: Installation) -> bool:
        """Returns whether the doctor names one of the peer's programs."""
        programs = [self.case.plugin.name, *([self.case.scheduler.name] if self.case.scheduler else [])]
        findings = [each for each in diagnosed(installation) if each["check"] == check]
        return any(each["where"].endswith(f"/{name}") for each in findings for name in programs)


def _owners(found: Object) -> list[Object]:
    owners: list[Object] = found["metadata"].get("ownerReferences", [])
    return owners


def diagnosed(installation: Installation) -> list[dict[str, str]]:
    out, kubeconfig = io.StringIO(), str(installation.cluster.admin.kubeconfig)
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        halfcard(["doctor", "--kubeconfig", kubeconfig, "--settings", str(installation.settings), "-o", "json"])
    found: list[dict[str, str]] = json.loads(out.getvalue())["findings"]
    return found


# --- before Halfcard --------------------------------------------------------------------------------------------------


def all_settings() -> dict[str, Any]:
    """Returns the settings of the six pages in one installation."""
    merged: dict[str, Any] = {}
    for name in CASES:
        for key, value in settings_of(ROOT / "docs" / f"from-{name}.md").items():
            merged[key] = [*dict.fromkeys([*merged.get(key, []), *value])] if isinstance(value, list) else value
    return merged


def prepare(name: str, case: Case, extender: ExtenderInstallation) -> Move:
    cluster = extender.cluster
    site = Site(extender, cluster.create_namespace(f"team-{name}"), f"model-{name}")
    (node,) = site.add_nodes(case.system, cards=CARDS)
    if case.plugin.label:
        assert cluster.kubectl("label", "node", node, case.plugin.label).code == 0
    of_node = dict([case.plugin.label.split("=")]) if case.plugin.label else {names.NVIDIA_LABEL_PRODUCT: site.model}
    start_peer(cluster, "DaemonSet", case.plugin, {"nodeSelector": of_node})
    if case.scheduler is not None:
        start_peer(cluster, "Deployment", case.scheduler, {})
    if name == "hami":
        assert cluster.kubectl("annotate", "node", node, f"{names.HAMI_REGISTER}=[]").code == 0
        cluster.wait_until(lambda: not site.cards(node), what="the extender to ignore HAMi's cards")
    site.create(case.running, **{"schedulerName": "no-scheduler", **case.fields}, nodeName=node)
    cluster.wait_until(lambda: site.pod("earlier")["status"]["phase"] == "Running", what=f"{name}'s pod to run")
    move = Move(name, case, site, node, site.pod("earlier"))
    move.wait_for_plugin(running=True)
    return move


def start_peer(cluster: Cluster, kind: str, program: Program, spec: Mapping[str, Any]) -> None:
    item = workload(kind, program.name, complete(pod(program.name).container()))
    template = item["spec"]["template"]["spec"]
    template |= spec
    template["containers"][0]["image"] = f"example.invalid/{program.image}:1"
    path = f"/apis/apps/v1/namespaces/{names.KUBE_SYSTEM}/{kind.lower()}s"
    cluster.request("POST", path, item).must()


# --- switch -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moved:
    """All systems after the switch.

    Attributes:
        doubly_served: the systems for which the doctor reported two plugins on one node during the switch.
    """

    installation: Installation
    extender: ExtenderInstallation
    moves: Mapping[str, Move]
    doubly_served: frozenset[str]


@pytest.fixture(scope="module")
def moved() -> Iterator[Moved]:
    settings = all_settings()
    with Cluster(flags=NO_RATE_LIMITS) as cluster, ExtenderInstallation(cluster, settings=settings) as extender:
        install_command(cluster)
        configure_slices(cluster)
        extender.add_replica()
        extender.leader()
        installation = Installation(cluster, settings=settings)
        installation.add_replica()
        moves = {name: prepare(name, case, extender) for name, case in CASES.items()}
        installation.register()
        doubly_served = {name for name, move in moves.items() if switch(move, installation)}
        extender.schedule_by(extender.recommended())
        yield Moved(installation, extender, moves, frozenset(doubly_served))


def install_command(cluster: Cluster) -> None:
    program = cluster.folder / "bin" / "halfcard"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cli "$@"\n')
    program.chmod(0o755)


def configure_slices(cluster: Cluster) -> None:
    """Creates the configuration of NVIDIA's time-slicing."""
    space = cluster.create_namespace(OPERATOR)
    file = ROOT / "deploy" / "examples" / "nvidia-time-slicing" / "manifests" / "time-slicing-config.yaml"
    item = yaml.safe_load(file.read_text())
    item["metadata"]["namespace"] = space
    done = cluster.kubectl("apply", "-f-", stdin=json.dumps(item))
    assert done.code == 0, done.stderr


def switch(move: Move, installation: Installation) -> bool:
    """Switches by the page; returns whether the doctor reported two plugins while the node had both labels."""
    cluster, agent = move.cluster, f"{names.AGENT_LABEL}=true"
    assert not move.is_reported("peer-plugin", installation)
    commands, _ = there_and_back(page_of(move.name))
    assert cluster.kubectl("label", "node", move.node, agent).code == 0
    doubly_served = move.is_reported("peer-plugin", installation)
    assert cluster.kubectl("label", "node", move.node, f"{names.AGENT_LABEL}-").code == 0
    for script in commands:
        move.run(script)
    move.wait_for_plugin(running=False)
    if move.case.is_served:
        imitate_agent(move)
    return doubly_served


def page_of(name: str) -> Path:
    return ROOT / "docs" / f"from-{name}.md"


def imitate_agent(move: Move) -> None:
    """Writes what Halfcard's agent writes to its node."""
    cards = [Card(index, move.site.model, T4_MIB, f"GPU-{index}") for index in range(CARDS)]
    annotations = {names.INVENTORY: write_inventory(cards)}
    cluster, path = move.cluster, f"/api/v1/nodes/{move.node}"
    cluster.client.merge(cluster.admin, path, {"metadata": {"annotations": annotations}})
    slots = {names.SLOT: "512"}
    cluster.client.merge(cluster.admin, f"{path}/status", {"status": {"capacity": slots, "allocatable": slots}})


@pytest.fixture(params=CASES)
def move(request: pytest.FixtureRequest, moved: Moved) -> Move:
    return moved.moves[request.param]


def check_untouched(move: Move) -> None:
    """Checks that the earlier pod is unchanged, or gone if the page drains the node."""
    if move.case.drained:
        move.cluster.wait_until(lambda: move.site.is_gone("earlier"), what="the node to be drained")
        return
    now = move.site.pod("earlier")
    for key in ("uid", "annotations", "labels"):
        assert now["metadata"].get(key) == move.before["metadata"].get(key)
    assert now["spec"] == move.before["spec"]
    assert now["status"]["containerStatuses"] == move.before["status"]["containerStatuses"]


def test_running_pods_are_not_touched(move: Move) -> None:
    check_untouched(move)


def test_a_new_pod_gets_a_free_card_and_one_that_does_not_fit_waits(move: Move) -> None:
    site = move.site
    stored = site.place(move.case.new_pod)
    assert node_of(stored) == move.node
    on = {card for cards in cards_of(stored).values() for card in cards}
    if not move.case.drained and annotations_of(move.before):
        assert on <= {"0", "GPU-0"}
    too_much, why = move.case.too_much
    site.create(too_much)
    assert why in site.wait_for_refusal("more")


def test_the_doctor_names_the_peers_plugin_only_while_both_serve_the_node(moved: Moved, move: Move) -> None:
    known = move.name != "tuya"  # its plugin is not public
    assert (move.name in moved.doubly_served) == known
    assert not move.is_reported("peer-plugin", moved.installation)


def test_the_peers_scheduler_is_named_until_it_is_removed(moved: Moved) -> None:
    """HAMi's scheduler stays for the nodes that are not switched."""
    reported = {name for name, move in moved.moves.items() if move.is_reported("peer-scheduler", moved.installation)}
    assert reported == {"hami"}


def test_a_pod_with_a_record_of_gpu_admission_is_named_with_the_fix(moved: Moved) -> None:
    move = moved.moves["gpu-manager"]
    with moved.installation.unregistered():
        move.site.create(pod("chosen").asks(core=10, memory=4).annotated(gpu_manager_record("tencent.com")))
    findings = {each["where"]: each for each in diagnosed(moved.installation) if each["check"] == "record-forged"}
    move.run(findings[f"pod {move.site.namespace}/chosen"]["command"])
    assert move.site.is_gone("chosen") or "deletionTimestamp" in move.site.pod("chosen")["metadata"]


# --- back -------------------------------------------------------------------------------------------------------------


def test_switching_back_touches_no_pod(moved: Moved) -> None:
    """This test is the last one: it removes Halfcard."""
    new_pods = {name: move.site.pod("new") for name, move in moved.moves.items()}
    for move in moved.moves.values():
        _, back = there_and_back(page_of(move.name))
        for script in back:
            move.run(script)
        move.wait_for_plugin(running=True)
        node = move.cluster.request("GET", f"/api/v1/nodes/{move.node}").must()
        assert names.INVENTORY not in annotations_of(node)
        assert names.AGENT_LABEL not in node["metadata"]["labels"]
    with moved.installation.unregistered():
        for name, move in moved.moves.items():
            check_untouched(move)
            assert move.case.drained or move.site.pod("new") == new_pods[name]
