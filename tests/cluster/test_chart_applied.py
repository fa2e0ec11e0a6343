"""Chart and manifests on a real control plane without nodes: upgrades, and what an uninstall leaves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from deploy.chart.made import CHART, MANIFESTS
from devcluster.cluster import Cluster
from devcluster.objects import Object
from devcluster.services.quota_installation import path_of, quota
from halfcard import names
from quota.uninstall import main as run_removal_job

from .dump import changes, dump
from .helm import Helm
from .pods import busybox_pod, create_pod
from .test_chart import objects

_TEAM: Final = "team-a"
_FOREIGN_GATE: Final = "example.com/other"
_CRD: Final = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gpuquotas.{names.OWN_DOMAIN}"
_WITHOUT_NODES: Final = {
    "webhooks": {"failurePolicy": "Ignore"},  # no pod serves them
    "removal": {"gatedPods": "keep"},  # its Job would never run
}


@pytest.fixture(scope="module")
def bare() -> Iterator[Cluster]:
    """A cluster; each test leaves nothing of Halfcard but its CRDs and its namespace."""
    with Cluster() as cluster:
        cluster.create_namespace(_TEAM)
        yield cluster


class Release:
    """A helm release, without waiting for pods: there is no node."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._helm = Helm(cluster)

    def apply(self, verb: str, chart: Path = CHART) -> None:
        values: Path = self.cluster.folder / "values.yaml"
        values.write_text(yaml.safe_dump(_WITHOUT_NODES))
        more = ["--create-namespace"] if verb == "install" else []
        self._helm.must(verb, "halfcard", str(chart), f"--namespace={names.NAMESPACE}", f"--values={values}", *more)

    def crd(self) -> Object:
        found: Object = self.cluster.request("GET", _CRD).must()
        return found

    def uninstall(self) -> None:
        self._helm.uninstall()


@pytest.fixture
def release(bare: Cluster) -> Iterator[Release]:
    found = Release(bare)
    yield found
    found.uninstall()
    bare.kubectl("delete", "crd", f"gpuquotas.{names.OWN_DOMAIN}", f"clustergpuquotas.{names.OWN_DOMAIN}")


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


@pytest.mark.parametrize(("action", "remaining"), [("open", ["halfcard", "foreign"]), ("delete", ["foreign"])])
def test_the_removal_job_opens_or_deletes_gated_pods_with_the_charts_rights(
    bare: Cluster, action: str, remaining: list[str]
) -> None:
    space = bare.create_namespace(f"gated-{action}")
    for name, gate in (("halfcard", names.QUOTA_GATE), ("foreign", _FOREIGN_GATE)):
        gated = busybox_pod(name, "true")
        gated["spec"]["schedulingGates"] = [{"name": gate}]
        create_pod(bare, space, gated)
    _grant_rights(bare, action)
    account = bare.service_account(names.NAMESPACE, "halfcard-removal")
    assert run_removal_job([*_job(action)["args"], f"--kubeconfig={account.kubeconfig}"]) == 0
    found = bare.request("GET", f"/api/v1/namespaces/{space}/pods").must()["items"]
    assert {each["metadata"]["name"]: each["spec"].get("schedulingGates", []) for each in found} == {
        name: [{"name": _FOREIGN_GATE}] if name == "foreign" else [] for name in remaining
    }


def _grant_rights(cluster: Cluster, action: str) -> None:
    cluster.create_namespace(names.NAMESPACE)
    for each in _removal(action):
        if each["kind"] in ("ClusterRole", "ClusterRoleBinding"):
            assert cluster.kubectl("apply", "-f-", stdin=json.dumps(each)).code == 0


def _removal(action: str) -> list[Object]:
    return [
        each for each in objects({"removal": {"gatedPods": action}}) if each["metadata"]["name"] == "halfcard-removal"
    ]


def _job(action: str) -> Object:
    (job,) = (each for each in _removal(action) if each["kind"] == "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    found: Object = container
    return found
