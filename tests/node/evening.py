"""What the README has people type on the first evening, in a shell whose commands lead to the harness."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

import yaml

from devcluster.build.binaries import program_path
from devcluster.cluster import Cluster
from devcluster.nodes.containerd import SNAPSHOTTER, SOCKET
from devcluster.nodes.images import BUSYBOX
from devcluster.nodes.node import RealNode
from devcluster.services.scheduling import schedule_by
from halfcard import names
from tests.cluster.helm import images
from tests.docs.pages import ROOT, fences
from tests.docs.shell import Shell

from .own_pods import own_pods

_README: Final = ROOT / "README.md"
_PULLED: Final = "docker.io/library/busybox:1.37"
_LONGEST_S: Final = 280.0
_SCHEDULERS_FOLDER: Final = "/etc/kubernetes/halfcard"
_SCHEDULER: Final = "kube-scheduler"
_SERVICE: Final = f"/api/v1/namespaces/{names.NAMESPACE}/services/{names.EXTENDER_SERVICE}"


def type_the_readme(cluster: Cluster, node: RealNode) -> str:
    """Every fence, in their order; returns what the last command of them says, once the first share runs."""
    shell, said = _shell(cluster, node), ""
    for typed in (fence.text for fence in fences(_README) if "evening" in fence.tags):
        done = shell.run(_here(typed, shell, node, cluster), seconds=_LONGEST_S)
        assert done.returncode == 0, done.stderr
        if _SCHEDULER in typed:
            _start_scheduler(cluster, _folder(shell))
        said = done.stdout
    (shell.folder / "halfcard.tar").unlink()
    return said.splitlines()[-1]


def _here(typed: str, shell: Shell, node: RealNode, cluster: Cluster) -> str:
    """With what a reader puts in, and what the harness has elsewhere."""
    (made_up,) = re.findall(r"`(agent\.arguments=\S+)`", _README.read_text(encoding="utf-8"))
    spliced = {
        " NODE ": f" {node.name} ",
        " --wait\n": f" --wait --set {made_up}\n",  # as the page says, where there is no GPU
        _SCHEDULERS_FOLDER: str(_folder(shell)),  # that of the machine is somebody else's
    }
    for there, here in spliced.items():
        typed = typed.replace(there, here)
    return f"export KUBECONFIG={cluster.admin.kubeconfig} PYTHONSAFEPATH=1\n{typed}"  # the checkout is elsewhere


def _start_scheduler(cluster: Cluster, folder: Path) -> None:
    """By the file that was typed, but for the address: there is no kube-proxy, so one pod stands for the Service."""
    file = folder / "scheduler.yaml"
    written = file.read_text().replace(_SCHEDULERS_FOLDER, str(folder))
    service = cluster.request("GET", _SERVICE).must()["spec"]["clusterIP"]
    address = f"{own_pods(cluster, names.EXTENDER_SERVICE)[0]['status']['podIP']}:{names.EXTENDER_PORT}"
    assert f"https://{service}:443/" in written
    schedule_by(cluster, yaml.safe_load(written.replace(f"{service}:443", address)))


def _folder(shell: Shell) -> Path:
    return shell.folder / "kubernetes"


def _shell(cluster: Cluster, node: RealNode) -> Shell:
    shell = Shell(cluster.folder / "evening")
    shell.folder.mkdir()
    shell.prepare()
    for name in ("helm", "kubectl"):
        shell.program(name, f'exec {program_path(name)} "$@"')
    shell.program("ctr", _ctr(node))
    shell.program(_SCHEDULER, 'test -r "$2"')  # started by its supervisor
    images(node, "tag", BUSYBOX, _PULLED)  # there is no registry
    return shell


def _ctr(node: RealNode) -> str:
    """The harness has no overlayfs, and its containerd listens elsewhere: on a node of one's own neither is said."""
    inside = shlex.join(node.command(str(program_path("ctr")), f"--address={SOCKET}"))
    return f'exec {inside} "$1" "$2" "$3" "$4" --local --snapshotter={SNAPSHOTTER} "$PWD/$5"'
