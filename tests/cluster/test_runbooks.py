"""The commands of the runbooks, run where Halfcard is installed: each is valid and names existing objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from devcluster.cluster import Cluster
from tests.deploy.rendered import DEPLOY, pods
from tests.docs.pages import Fence, all_fences

from .typed import run_commands

PAGE: Final = "runbooks.md"
RUNBOOKS: Final = [fence for fence in all_fences("bash") if fence.page.name == PAGE]
_CERTIFICATES: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "certificates.cert-manager.io"},
    "spec": {
        "group": "cert-manager.io",
        "scope": "Namespaced",
        "names": {"plural": "certificates", "singular": "certificate", "kind": "Certificate"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


@pytest.fixture(scope="module")
def installed() -> Iterator[Cluster]:
    """A cluster with the shipped manifests and cert-manager's CRD; without nodes, so that no pod runs."""
    with Cluster() as cluster:
        done = cluster.kubectl("apply", "-f", str(DEPLOY / "halfcard.yaml"))
        assert done.code == 0, done.stderr
        cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", _CERTIFICATES).must()
        done = cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        assert done.code == 0, done.stderr
        yield cluster


@pytest.mark.parametrize("fence", RUNBOOKS, ids=str)
def test_a_command_of_a_runbook_works(installed: Cluster, fence: Fence, tmp_path: Path) -> None:
    run_commands(installed, fence, tmp_path)


def test_labels_in_the_runbooks_are_those_of_the_pods() -> None:
    """For a label that no pod has, kubectl prints nothing and no error."""
    used = set(re.findall(r"-l app\.kubernetes\.io/name=(\S+)", "".join(fence.text for fence in RUNBOOKS)))
    existing = {pod["metadata"]["labels"]["app.kubernetes.io/name"] for pod in pods().values()}
    assert used == existing
