"""Runs the README's section "Install it in your cluster" in a shell whose commands lead to the test cluster."""

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

from .halfcard_pods import halfcard_pods

_README: Final = ROOT / "README.md"
CONFIGURED: Final = "install"
MANAGED: Final = "managed"
"""The tags of the commands: for a scheduler that can be configured, and for one that cannot."""
_PULLED: Final = "docker.io/library/busybox:1.37"
_LONGEST_S: Final = 280.0
_SCHEDULERS_FOLDER: Final = "/etc/kubernetes/halfcard"
_CRON: Final = "/etc/cron.daily"
_SCHEDULER: Final = "kube-scheduler"
_SERVICE: Final = f"/api/v1/namespaces/{names.NAMESPACE}/services/{names.EXTENDER_SERVICE}"


def run_the_readme(cluster: Cluster, node: RealNode, tag: str) -> str:
    """Runs all fences with the tag in their order; returns the last line of output, the card of the first share."""
    shell, output = _shell(cluster, node), ""
    for typed in (fence.text for fence in fences(_README) if tag in fence.tags):
        done = shell.run(_adapted(typed, shell, node, cluster), seconds=_LONGEST_S)
        assert done.returncode == 0, done.stderr
        if f"{_SCHEDULER} --config" in typed:
            _start_scheduler(cluster, _folder(shell))
        output = done.stdout
    (shell.folder / "halfcard.tar").unlink()
    return output.splitlines()[-1]


def _adapted(typed: str, shell: Shell, node: RealNode, cluster: Cluster) -> str:
    """Replaces what a reader replaces, and the paths that differ in the test cluster."""
    (made_up,) = re.findall(r"`(agent\.arguments=\S+)`", _README.read_text(encoding="utf-8"))
    replacements = {
        " NODE ": f" {node.name} ",
        " --wait": f" --wait --set {made_up}",  # the page says so for nodes without a GPU
        f"{_CRON}/halfcard-scheduler-certificate  ": f"{_CRON}/halfcard-scheduler-certificate {_SCHEDULERS_FOLDER} ",
        _CRON: str(shell.folder / "cron"),  # the machine's own folders must not change
        _SCHEDULERS_FOLDER: str(_folder(shell)),
    }
    for old, new in replacements.items():
        typed = typed.replace(old, new)
    # PYTHONSAFEPATH: the shell does not run in the checkout
    return f"export KUBECONFIG={cluster.admin.kubeconfig} PYTHONSAFEPATH=1\n{typed}"


def _start_scheduler(cluster: Cluster, folder: Path) -> None:
    """Starts kube-scheduler with the file that the commands wrote, but with the address of an extender pod.

    Without kube-proxy the address of the Service leads nowhere.
    """
    file = folder / "scheduler.yaml"
    written = file.read_text().replace(_SCHEDULERS_FOLDER, str(folder))
    service = cluster.request("GET", _SERVICE).must()["spec"]["clusterIP"]
    address = f"{halfcard_pods(cluster, names.EXTENDER_SERVICE)[0]['status']['podIP']}:{names.EXTENDER_PORT}"
    assert f"https://{service}:443/" in written
    schedule_by(cluster, yaml.safe_load(written.replace(f"{service}:443", address)))


def _folder(shell: Shell) -> Path:
    return shell.folder / "kubernetes"


def _shell(cluster: Cluster, node: RealNode) -> Shell:
    shell = Shell(cluster.folder / "readme")
    shell.folder.mkdir()
    shell.prepare()
    for name in ("helm", "kubectl"):
        shell.program(name, f'exec {program_path(name)} "$@"')
    shell.program("ctr", _ctr(node))
    shell.program(_SCHEDULER, 'test -r "$2"')  # `_start_scheduler` starts it
    images(node, "tag", BUSYBOX, _PULLED)  # there is no registry
    return shell


def _ctr(node: RealNode) -> str:
    """The test node has no overlayfs, and its own containerd socket; on a usual node neither option is needed."""
    inside = shlex.join(node.command(str(program_path("ctr")), f"--address={SOCKET}"))
    return f'exec {inside} "$1" "$2" "$3" "$4" --local --snapshotter={SNAPSHOTTER} "$PWD/$5"'
