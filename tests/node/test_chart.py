"""Halfcard from its chart, as pods of its own image on a real node: installed, upgraded under load, uninstalled.

kube-scheduler calls the extender over mutual TLS, with the certificate that `halfcard certs` issued for it.
"""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, Final

import pytest

from cli.__main__ import main as halfcard
from deploy.image.build import NAME, default_cache, image
from devcluster.cluster import Cluster
from devcluster.nodes.node import RealNode
from devcluster.objects import Object
from devcluster.services.quota_installation import path_of, quota
from halfcard import __version__, names
from halfcard.inventory import read_inventory
from tests.builders import pod
from tests.cluster.dump import Dump, changes, dump
from tests.cluster.hammer import Hammer
from tests.cluster.helm import Helm, documented, images
from tests.cluster.load import NO_RATE_LIMITS
from tests.cluster.manifests import bad
from tests.cluster.pods import busybox_pod, create_pod, get_pod, wait_for_phase
from tests.cluster.site import cards_of

from . import leftovers
from .container_report import reporting
from .gpu_churn import container_ids
from .halfcard_pods import (
    certificate,
    configure_scheduler,
    halfcard_pods,
    image_names,
    replicas,
    served_certificate,
    touch,
)
from .pod_load import PodLoad, failures
from .readme_installation import CONFIGURED, run_the_readme

_VALUES: Final = {"agent": {"arguments": ["--fake-gpus=4xT4"]}}
_OTHER_SETTINGS: Final = {
    **_VALUES,
    "settings": {"packing": "spread", "exempt_namespaces": ["elsewhere"]},  # changes the webhooks' registration, too
    "webhooks": {"guard": True},
    # There is no registry: the image is on the node.
    "image": {"repository": "registry.example/halfcard", "pullPolicy": "Never"},
}
_OTHER_IMAGE: Final = f"registry.example/halfcard:{__version__}"
_LARGEST_IMAGE: Final = 45_000_000
_MAX_INSTALLATION_S: Final = 300.0
_PROPAGATION_S: Final = 120.0
_MIN_CREATES: Final = 100
_TEAM: Final = "team-a"
_OTHER_GATE: Final = "example.com/other"


@pytest.fixture(scope="module")
def before() -> dict[str, Object]:
    """The objects that existed before Halfcard; filled in by `installation`."""
    return {}


@dataclass(frozen=True)
class ReadmeInstallation:
    """Halfcard, installed with the README's commands: `card` is that of the first share, `seconds` the time it took."""

    helm: Helm
    node: RealNode
    card: str
    seconds: float


@pytest.fixture(scope="module")
def installation(before: dict[str, Object]) -> Iterator[ReadmeInstallation]:
    began = time.monotonic()
    with Cluster(flags=NO_RATE_LIMITS) as cluster, RealNode(cluster, "gpu-a") as node:
        cluster.create_namespace(_TEAM)
        create_pod(cluster, _TEAM, gated("waits"))  # keeps its gate until the runbook's command opens it
        before |= dump(cluster)
        card = run_the_readme(cluster, node, CONFIGURED)
        yield ReadmeInstallation(Helm(cluster), node, card, time.monotonic() - began)


@pytest.fixture
def helm(installation: ReadmeInstallation) -> Helm:
    return installation.helm


def gated(name: str) -> Object:
    """A pod with Halfcard's scheduling gate and with another one."""
    item = busybox_pod(name, "exec sleep infinity")
    item["spec"]["schedulingGates"] = [{"name": names.QUOTA_GATE}, {"name": _OTHER_GATE}]
    return item


def pod_load(cluster: Cluster) -> Hammer:
    """Creates pods one after the other: more would take the CPU that the replaced processes need."""
    return Hammer(PodLoad(cluster, _TEAM, real_every=2).create, threads=1)


def run_share(cluster: Cluster, name: str) -> Any:
    created = create_pod(cluster, _TEAM, reporting(pod(name).asks(core=30, memory=10)).manifest)
    return wait_for_phase(cluster, _TEAM, created, "Running")


def test_the_image_build_is_reproducible() -> None:
    built = image(default_cache())
    assert built == image(default_cache())
    assert len(built) < _LARGEST_IMAGE


def test_from_no_cluster_to_the_first_share_takes_less_than_five_minutes(installation: ReadmeInstallation) -> None:
    sys.stderr.write(f"from no cluster to the first share: {installation.seconds:.0f} s\n")
    assert installation.seconds < _MAX_INSTALLATION_S
    recorded = cards_of(get_pod(installation.helm.cluster, "default", "first-share"))
    uuids = uuids_by_name(installation.helm.cluster, installation.node.name)
    assert [uuids[name] for name in recorded["main"]] == [installation.card]


def uuids_by_name(cluster: Cluster, node: str) -> dict[str, str]:
    """Cards by index and by uuid: a record has the index if it was written before the agent had published the uuids."""
    inventory = cluster.request("GET", f"/api/v1/nodes/{node}").must()["metadata"]["annotations"][names.INVENTORY]
    cards = read_inventory(inventory).cards
    return {str(card.index): card.uuid for card in cards} | {card.uuid: card.uuid for card in cards}


def test_the_doctor_finds_nothing(helm: Helm) -> None:
    output = io.StringIO()
    reached = ["--namespace", _TEAM, f"--kubeconfig={helm.cluster.admin.kubeconfig}"]
    with redirect_stdout(output):
        # the first share runs once the agent has registered with kubelet, seconds before its pod counts as ready
        code = halfcard(["doctor", "--strict", "--wait", "60", *reached])
    assert code == 0, output.getvalue()


def test_helm_test_asks_the_webhooks_and_every_extender(helm: Helm) -> None:
    said = helm.must(*documented("test"))
    assert set(re.findall(r"Phase: +(\w+)", said)) == {"Succeeded"}, said
    left = helm.cluster.kubectl("get", "pods,roles,serviceaccounts", "-A", "-o", "name").stdout
    assert "halfcard-test" not in left


def test_an_invalid_request_is_refused_with_the_rule_and_the_fix(helm: Helm) -> None:
    done = helm.cluster.kubectl("create", "-f-", f"--namespace={_TEAM}", stdin=json.dumps(bad("much")))
    assert done.code == 1
    assert 'got "150"; cores must be 1-99 for a share of one card, or a multiple of 100' in done.stderr
    assert "use 100 or 200 [HC002]" in done.stderr


def test_only_the_agent_violates_the_restricted_pod_security_standard(helm: Helm) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    done = helm.cluster.kubectl("label", "--dry-run=server", "namespace", names.NAMESPACE, label)
    assert set(re.findall(r"halfcard-([a-z]+)[-a-z0-9]*:", done.stderr)) == {"agent"}, done.stderr


def test_a_rotated_certificate_reaches_the_webhook_without_failed_calls(installation: ReadmeInstallation) -> None:
    """Kubelet updates mounted Secrets after about a minute; a change of the pods makes it look at once."""
    cluster, admission = installation.helm.cluster, halfcard_pods(installation.helm.cluster, names.ADMISSION_SERVICE)

    def served() -> set[str]:
        return {served_certificate(installation.node, each["status"]["podIP"]) for each in admission}

    before, previous = served(), certificate(cluster, names.ADMISSION_TLS)
    with pod_load(cluster) as hammer:
        assert halfcard(["certs", "rotate", f"--kubeconfig={cluster.admin.kubeconfig}"]) == 0
        cluster.wait_until(
            lambda: certificate(cluster, names.ADMISSION_TLS) != previous, what="the new certificate", seconds=60
        )
        touch(cluster, admission)
        cluster.wait_until(
            lambda: not served() & before, what="all pods to serve the new certificate", seconds=_PROPAGATION_S
        )
        hammer.wait_for(30)
    assert failures(hammer.answers) == {}
    assert len(hammer.answers) >= _MIN_CREATES
    assert len(served()) == len(before) == 1


def test_an_upgrade_fails_no_call_and_running_pods_survive_it_and_a_rollback(installation: ReadmeInstallation) -> None:
    helm, cluster = installation.helm, installation.helm.cluster
    images(installation.node, "tag", NAME, _OTHER_IMAGE)
    running = run_share(cluster, "two")
    first, certificate_before = replicas(cluster), certificate(cluster)
    with pod_load(cluster) as hammer:
        hammer.wait_for(30)
        began = len(hammer.answers)
        helm.upgrade(_OTHER_SETTINGS)
        meanwhile = len(hammer.answers) - began
        hammer.wait_for(30)
    assert meanwhile >= _MIN_CREATES
    assert failures(hammer.answers) == {}
    second = replicas(cluster)
    assert image_names(cluster) == {_OTHER_IMAGE}
    helm.rollback()
    third = replicas(cluster)
    assert not first & second and not second & third
    assert certificate(cluster) == certificate_before
    assert container_ids(get_pod(cluster, _TEAM, "two")) == container_ids(running)
    configure_scheduler(cluster)
    run_share(cluster, "three")


def test_an_uninstall_leaves_only_what_the_page_documents(installation: ReadmeInstallation, before: Dump) -> None:
    """Halfcard is gone after this test, so that only the next one may follow."""
    cluster = installation.helm.cluster
    create_quota(cluster)
    cluster.request("POST", f"/api/v1/namespaces/{_TEAM}/resourcequotas", leftovers.WRITTEN).must()
    run_share(cluster, "kept")
    unrelated = leftovers.objects_in(dump(cluster), _TEAM, "default")
    installation.helm.uninstall()

    def remaining() -> list[str]:
        return sorted(dump(cluster).keys() - before.keys() - unrelated.keys())

    expected = leftovers.expected_objects(_TEAM)
    cluster.wait_until(
        lambda: remaining() == expected,
        what="only the documented objects to be left",
        seconds=60,
        details=lambda: "\n".join(remaining()),
    )
    after = dump(cluster)
    assert leftovers.allocatable(after, installation.node.name) == {"0"}
    assert leftovers.folders_with_files(installation.node) == {"/var/lib/halfcard", "/run/cdi"}
    assert leftovers.undocumented_keys() == []
    assert changes(before, after) == {f"Node {installation.node.name}": leftovers.NODE_FIELDS}
    assert changes(unrelated, after) == {}


def test_entries_added_to_native_quotas_stay_until_quota_revert(helm: Helm) -> None:
    cluster = helm.cluster
    assert leftovers.native_quota(cluster, _TEAM).keys() == {*leftovers.WRITTEN["spec"]["hard"], leftovers.TWIN}
    code, output = leftovers.revert_quotas(cluster, "--dry-run")
    assert (code, leftovers.TWIN in output) == (1, True), output
    assert leftovers.revert_quotas(cluster)[0] == 0
    assert leftovers.native_quota(cluster, _TEAM) == leftovers.WRITTEN["spec"]["hard"]


def create_quota(cluster: Cluster) -> None:
    """Creates a quota and waits until it is counted; before that, it refuses all pods."""
    item = quota("gpu", {"hard": {"cards": 4, "cores": 400}}, _TEAM)
    done = cluster.kubectl("create", "-f-", stdin=json.dumps(item))
    assert done.code == 0, done.stderr

    def conditions() -> dict[str, str]:
        status = cluster.request("GET", path_of(item)).must().get("status", {})
        return {each["type"]: each["status"] for each in status.get("conditions", [])}

    cluster.wait_until(lambda: conditions().get("Ready") == "True", what="the quota to be counted")
