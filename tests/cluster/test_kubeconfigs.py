"""Commands at a real API server through what only kubectl understands: `as:`, and `kubectl proxy` as the way out."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cli.__main__ import main
from devcluster.build.binaries import program_path
from devcluster.cluster import Cluster

TENANT = "tenant"


@pytest.fixture
def impersonating(cluster: Cluster, tmp_path: Path) -> Path:
    """The administrator's kubeconfig with `as:`, with which kubectl acts as a tenant."""
    config = yaml.safe_load(cluster.admin.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = TENANT
    file = tmp_path / "impersonating"
    file.write_text(json.dumps(config))
    return file


@pytest.fixture
def proxy(impersonating: Path) -> Iterator[str]:
    """The address of a `kubectl proxy` that acts as the tenant."""
    command = [str(program_path("kubectl")), "proxy", "--port=0", f"--kubeconfig={impersonating}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        listening = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
        assert listening is not None
        yield f"http://{listening[0]}"
        process.kill()


@pytest.mark.parametrize("command", ["inspect", "doctor", "certs rotate"])
def test_a_command_never_acts_as_the_administrator_where_kubectl_would_not(
    impersonating: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--kubeconfig", str(impersonating)]) == 2
    said = capsys.readouterr()
    assert "has the field as (kubectl acts as another user)" in said.err and "kubectl proxy" in said.err
    assert said.out == ""


def test_a_command_through_kubectl_proxy_acts_as_kubectl_does(
    cluster: Cluster, proxy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", "--server", proxy]) == 2
    said = capsys.readouterr().err
    assert f'User "{TENANT}" cannot list' in said.replace("\\", "")
    granted = ("--clusterrole=view", f"--user={TENANT}")
    cluster.kubectl("create", "clusterrolebinding", "tenant-views", *granted)
    cluster.kubectl("create", "clusterrole", "reads-nodes", "--verb=list", "--resource=nodes")
    cluster.kubectl(
        "create", "clusterrolebinding", "tenant-reads-nodes", "--clusterrole=reads-nodes", f"--user={TENANT}"
    )
    assert main(["inspect", "--server", proxy, "-o", "json"]) == 0
    assert "nodes" in json.loads(capsys.readouterr().out)
