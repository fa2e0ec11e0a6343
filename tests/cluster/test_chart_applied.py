"""Chart and manifests on a real control plane without nodes: upgrades, and what an uninstall leaves."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from certs.chains import CONFIGURATIONS
from certs.store import JSON_PATCH
from certs.webhooks.registration_plan import wanted_webhooks
from deploy.chart.made import CHART, MANIFESTS
from devcluster.cluster import Cluster
from devcluster.objects import Object
from devcluster.services.quota_installation import path_of, quota
from halfcard import names
from settings.installation import read_settings
from tests.builders import pod
from tests.docs.pages import all_fences

from .dump import changes, dump
from .helm import Helm
from .manifests import complete
from .pods import busybox_pod, create_pod
from .typed import run_commands

_TEAM: Final = "team-a"
_FOREIGN_GATE: Final = "example.com/other"
_CRD: Final = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gpuquotas.{names.OWN_DOMAIN}"
_CRDS: Final = tuple(
    f"{kind}.{names.OWN_DOMAIN}" for kind in (names.GPU_QUOTAS, names.CLUSTER_GPU_QUOTAS, names.GPU_QUOTA_USAGES)
)
_SCOPE: Final = {
    "scopeName": "PriorityClass",
    "operator": "In",
    "values": ["system-node-critical", "system-cluster-critical"],
}
_LIMITED_CLASSES: Final = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AdmissionConfiguration",
    "plugins": [
        {
            "name": "ResourceQuota",
            "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "ResourceQuotaConfiguration",
                "limitedResources": [{"resource": "pods", "matchScopes": [_SCOPE]}],
            },
        }
    ],
}
_UNINSTALL_S: Final = 20.0


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that limits the priority classes of the system, as GKE does; each test leaves nothing of Halfcard but
    its CRDs and its namespace.
    """
    file = tmp_path_factory.mktemp("admission") / "admission.json"
    file.write_text(json.dumps(_LIMITED_CLASSES))
    with Cluster(flags={"kube-apiserver": [f"--admission-control-config-file={file}"]}) as cluster:
        cluster.create_namespace(_TEAM)
        yield cluster


class Release:
    """A helm release, without waiting for pods: there is no node."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._helm = Helm(cluster)

    def apply(self, verb: str, chart: Path = CHART) -> None:
        more = ["--create-namespace"] if verb == "install" else []
        self._helm.must(verb, "halfcard", str(chart), f"--namespace={names.NAMESPACE}", *more)

    def crd(self) -> Object:
        found: Object = self.cluster.request("GET", _CRD).must()
        return found

    def uninstall(self) -> None:
        self._helm.uninstall()


def remove_crds(cluster: Cluster) -> None:
    """Deletes the CRDs. The API server's finalizer rests for minutes after an error; a change makes it try at once."""
    for attempt in range(5):
        cluster.kubectl("annotate", "crd", *_CRDS, f"example.com/attempt={attempt}", "--overwrite")
        if cluster.kubectl("delete", "crd", *_CRDS, "--ignore-not-found", "--timeout=20s").code == 0:
            return
    raise AssertionError("the CRDs are not deleted within 100 s")


@pytest.fixture
def release(bare: Cluster) -> Iterator[Release]:
    found = Release(bare)
    yield found
    found.uninstall()
    remove_crds(bare)


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """An earlier chart, whose CRD of quotas has one column less."""
    copied = tmp_path / "halfcard"
    shutil.copytree(CHART, copied)
    file = copied / "kinds" / "gpuquota.yaml"
    crd = yaml.safe_load(file.read_text())
    assert _columns(crd).pop()
    file.write_text(yaml.safe_dump(crd))
    return copied


def _columns(crd: Object) -> list[Any]:
    found: list[Any] = crd["spec"]["versions"][0]["additionalPrinterColumns"]
    return found


def test_the_manifests_are_applied_and_deleted_and_nothing_is_left(bare: Cluster) -> None:
    bare.kubectl("delete", "namespace", names.NAMESPACE, "--ignore-not-found")
    before = dump(bare)
    for verb in ("apply", "delete"):
        done = bare.kubectl(verb, "-f", str(MANIFESTS))
        assert done.code == 0, done.stderr
        assert ({f"Namespace {names.NAMESPACE}"} <= dump(bare).keys()) == (verb == "apply")

    def leftovers() -> object:
        after = dump(bare)
        return sorted(after.keys() - before.keys()), changes(before, after)

    bare.wait_until(lambda: leftovers() == ([], {}), what="all objects to be deleted", details=lambda: str(leftovers()))


def test_an_upgrade_updates_the_crds(release: Release, earlier: Path) -> None:
    release.apply("install", earlier)
    before = _columns(release.crd())
    release.apply("upgrade")
    shipped = yaml.safe_load((CHART / "kinds" / "gpuquota.yaml").read_text())
    assert before == _columns(shipped)[:-1]
    assert _columns(release.crd()) == _columns(shipped)


def test_pods_are_created_where_the_api_server_limits_their_priority_class(release: Release) -> None:
    release.apply("install")
    cluster, wanted = release.cluster, f"/api/v1/namespaces/{_TEAM}/pods"
    critical = busybox_pod("critical", "true")
    critical["spec"]["priorityClassName"] = "system-cluster-critical"
    refused = cluster.request("POST", wanted, critical)
    assert not refused.ok and "insufficient quota to match these scopes" in refused.body["message"]

    def pods() -> set[str]:
        found = cluster.request("GET", f"/api/v1/namespaces/{names.NAMESPACE}/pods").must()["items"]
        return {each["metadata"]["labels"][names.NAME_LABEL] for each in found}

    critical_ones = {names.ADMISSION_SERVICE, names.EXTENDER_SERVICE, names.QUOTA_SERVICE}
    cluster.wait_until(lambda: critical_ones <= pods(), what="the pods to be created", details=lambda: str(pods()))


def test_a_second_release_is_refused_with_the_name_of_the_first(release: Release) -> None:
    release.apply("install")
    refused = Helm(release.cluster)("install", "other", str(CHART), f"--namespace={names.NAMESPACE}")
    said = "Halfcard is installed already, as the release halfcard: a cluster has one; helm upgrade halfcard, or first"
    assert refused.code != 0 and said in refused.stderr


def test_quotas_survive_an_uninstall_and_a_new_install_updates_their_crd(release: Release, earlier: Path) -> None:
    release.apply("install", earlier)
    item = quota("gpu", {"hard": {"cards": 4}}, _TEAM)
    done = release.cluster.kubectl("create", "-f-", stdin=json.dumps(item))
    assert done.code == 0, done.stderr
    stored, crd = release.cluster.request("GET", path_of(item)).must(), release.crd()
    release.uninstall()
    release.apply("install")
    assert release.cluster.request("GET", path_of(item)).must() == stored
    assert release.crd()["metadata"]["uid"] == crd["metadata"]["uid"]
    assert len(_columns(release.crd())) == len(_columns(crd)) + 1, "the new release has one column more"


def test_an_installation_whose_pods_never_start_refuses_nothing_and_is_removed_in_seconds(bare: Cluster) -> None:
    """As without the image on the nodes: no replica of the webhook is ever ready."""
    bare.kubectl("delete", "namespace", names.NAMESPACE, "--ignore-not-found")
    before, release = dump(bare), Release(bare)
    release.apply("install")
    early = json.dumps(complete(pod("early").asks(core=30, memory=20)))
    created = bare.kubectl("create", "-f-", f"--namespace={_TEAM}", stdin=early)
    assert created.code == 0, created.stderr
    began = time.monotonic()
    release.uninstall()
    assert time.monotonic() - began < _UNINSTALL_S
    bare.kubectl("delete", "pod", "early", f"--namespace={_TEAM}", "--force")
    left = {f"CustomResourceDefinition {name}" for name in _CRDS}
    own = {f"APIService v1alpha1.{names.OWN_DOMAIN}", f"Namespace {names.NAMESPACE}"}
    in_namespace = {f"ConfigMap {names.NAMESPACE} kube-root-ca.crt", f"ServiceAccount {names.NAMESPACE} default"}
    bare.wait_until(
        lambda: dump(bare).keys() - before.keys() == left | own | in_namespace,
        what="only the kinds and the namespace to be left",
        details=lambda: str(sorted(dump(bare).keys() - before.keys())),
    )


def test_an_upgrade_keeps_the_registered_webhooks(release: Release) -> None:
    release.apply("install")
    for place, webhooks in wanted_webhooks(read_settings({}), fails="Ignore").items():
        operations: Any = [{"op": "add", "path": "/webhooks", "value": webhooks}]
        client, admin = release.cluster.client, release.cluster.admin
        client.request(admin, "PATCH", str(place), operations, content_type=JSON_PATCH).must()
    registered = [release.cluster.request("GET", str(place)).must()["webhooks"] for place in CONFIGURATIONS]
    release.apply("upgrade")
    assert [release.cluster.request("GET", str(place)).must()["webhooks"] for place in CONFIGURATIONS] == registered


def test_the_pages_command_opens_the_gates_that_wait_for_a_quota(bare: Cluster, tmp_path: Path) -> None:
    for name, gates in (("both", [_FOREIGN_GATE, names.QUOTA_GATE]), ("ours", [names.QUOTA_GATE]), ("none", [])):
        gated = busybox_pod(name, "true")
        gated["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
        create_pod(bare, _TEAM, gated)
    (fence,) = (each for each in all_fences("bash") if names.QUOTA_GATE in each.text)
    run_commands(bare, fence, tmp_path)
    found = bare.request("GET", f"/api/v1/namespaces/{_TEAM}/pods").must()["items"]
    gates_left = {each["metadata"]["name"]: each["spec"].get("schedulingGates", []) for each in found}
    assert gates_left == {"both": [{"name": _FOREIGN_GATE}], "ours": [], "none": []}
