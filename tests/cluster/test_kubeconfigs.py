"""Commands at a real API server: a program that logs in, other users, several files, proxies, and `kubectl proxy`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.__main__ import main
from devcluster.build.binaries import program_path
from devcluster.cluster import Cluster
from devcluster.control_plane.users import User
from kube.api.informer import Informer
from kube.api.kubeconfig import from_kubeconfig
from kube.api.list_watch import ApiError, Collection, decoded
from kube.node_source import NODES
from tests.kube.exec_plugin import V1, Plugin
from tests.kube.tunnelling_proxy import tunnelling_proxy
from tests.waiting import until

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


def test_a_command_acts_as_the_user_that_kubectl_acts_as(
    cluster: Cluster, impersonating: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", "--kubeconfig", str(impersonating)]) == 2
    assert f'User "{TENANT}" cannot list' in capsys.readouterr().err.replace("\\", "")
    admin = ["inspect", "--kubeconfig", str(cluster.admin.kubeconfig), "--as", "somebody"]
    assert main(admin) == 2
    assert 'User "somebody" cannot list' in capsys.readouterr().err.replace("\\", "")
    assert main([*admin, "--as-group", "others", "--as-group", "system:masters", "-o", "json"]) == 0


def test_two_files_are_one_kubeconfig(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = yaml.safe_load(cluster.admin.kubeconfig.read_text())
    for name in ("users", "clusters"):
        (tmp_path / name).write_text(json.dumps({name: config.pop(name)}))
    (tmp_path / "contexts").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", ":".join(str(tmp_path / name) for name in ("users", "clusters", "contexts")))
    assert main(["inspect", "-o", "json"]) == 0
    assert "nodes" in json.loads(capsys.readouterr().out)


def test_a_command_goes_through_the_proxy_of_the_environment(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with tunnelling_proxy() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert main(["inspect", "--kubeconfig", str(cluster.admin.kubeconfig), "-o", "json"]) == 0
    assert "nodes" in json.loads(capsys.readouterr().out)
    assert proxy.tunnels


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


@pytest.fixture(scope="module")
def user(cluster: Cluster) -> User:
    """An account that may follow nodes."""
    cluster.kubectl("create", "clusterrole", "follows", "--verb=list,watch", "--resource=nodes,pods")
    account = "--serviceaccount=default:logs-in"
    cluster.kubectl("create", "clusterrolebinding", "logs-in-follows", "--clusterrole=follows", account)
    return cluster.service_account("default", "logs-in")


@pytest.fixture
def plugin(user: User, tmp_path: Path) -> Plugin:
    """A program whose tokens end after a second."""
    config = yaml.safe_load(user.kubeconfig.read_text())
    login = {"apiVersion": V1, "command": "./login", "interactiveMode": "IfAvailable"}
    config["users"][0]["user"] = {"exec": login}
    (tmp_path / "config").write_text(json.dumps(config))
    plugin = Plugin(tmp_path)
    plugin.prints({"token": "TOKEN", "expirationTimestamp": "END"})
    end = '$(date --utc --date="+1 second" +%FT%T.%NZ)'
    plugin.does(f'sed "s/TOKEN/$(cat token)/; s/END/{end}/" status')
    (tmp_path / "token").write_text(user.token)
    return plugin


async def test_a_long_watch_goes_on_when_the_token_of_a_program_ends(cluster: Cluster, plugin: Plugin) -> None:
    nodes: set[str] = set()
    follower = Informer(
        Collection(from_kubeconfig(plugin.folder / "config"), NODES, dict[str, Any]),
        listed=lambda _: None,
        changed=lambda events: nodes.update(node["metadata"]["name"] for node, _ in decoded(events)),
        name="nodes",
    )
    following = asyncio.create_task(follower.run())
    async with asyncio.timeout(60):
        await follower.wait_until_ready()
    before = plugin.runs()
    while plugin.runs() < before + 2:
        await follower.refresh()
    await asyncio.to_thread(cluster.add_node, "seen-after-a-renewal", {})
    await until(lambda: "seen-after-a-renewal" in nodes, within_s=60)
    assert follower.trouble is None
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following


def test_a_command_logs_in_with_a_program(plugin: Plugin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--kubeconfig", str(plugin.folder / "config"), "-o", "json"]) == 0
    assert "nodes" in json.loads(capsys.readouterr().out)


def test_a_refused_token_is_followed_by_a_new_login(plugin: Plugin) -> None:
    plugin.prints({"token": "TOKEN"})
    good = (plugin.folder / "token").read_text()
    (plugin.folder / "token").write_text("ended")
    nodes = Collection(from_kubeconfig(plugin.folder / "config"), NODES, dict[str, Any])
    with pytest.raises(ApiError, match="401"):
        next(nodes.pages())
    (plugin.folder / "token").write_text(good)
    assert next(nodes.pages())[1]
    assert plugin.runs() == 2


@pytest.mark.parametrize(("groups", "code"), [(["system:masters"], 0), ([], 2)], ids=["with rights", "without"])
def test_a_program_logs_in_with_a_certificate(
    cluster: Cluster, plugin: Plugin, capsys: pytest.CaptureFixture[str], groups: list[str], code: int
) -> None:
    user = f"certified-{code}"
    pair = cluster.users.by_certificate(user, *groups).pair
    assert pair is not None
    plugin.prints({"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()})
    plugin.does("cat status")
    assert main(["inspect", "--kubeconfig", str(plugin.folder / "config"), "-o", "json"]) == code
    said = capsys.readouterr()
    assert (f'User "{user}" cannot list' in said.err.replace("\\", "")) == bool(code) != ("nodes" in said.out)
