"""What the README has people type on the first evening, in a shell whose commands lead to the harness."""

from __future__ import annotations

import re
import shlex
from typing import Final

from halfcard import names
from tests.cluster.binaries import program_path
from tests.cluster.cluster import Cluster
from tests.cluster.containerd import SNAPSHOTTER, SOCKET
from tests.cluster.node import Node
from tests.docs.pages import ROOT, fences
from tests.docs.shell import Shell

_README: Final = ROOT / "README.md"
_LONGEST_S: Final = 280.0


def type_the_readme(cluster: Cluster, node: Node) -> None:
    """All four commands; returns when Halfcard's pods are ready."""
    (typed,) = (fence.text for fence in fences(_README) if "helm install" in fence.text)
    (made_up,) = re.findall(r"`(agent\.arguments=\S+)`", _README.read_text(encoding="utf-8"))
    script = typed.replace(" --wait", f" --wait --set {made_up}").replace(" NODE ", f" {node.name} ")
    assert names.AGENT_LABEL in script
    shell = _shell(cluster, node)
    where = f"export KUBECONFIG={cluster.admin.kubeconfig} PYTHONSAFEPATH=1"  # the checkout is elsewhere
    done = shell.run(f"{where}\n{script}", seconds=_LONGEST_S)
    assert done.returncode == 0, done.stderr
    (shell.folder / "halfcard.tar").unlink()


def _shell(cluster: Cluster, node: Node) -> Shell:
    shell = Shell(cluster.folder / "evening")
    shell.folder.mkdir()
    shell.prepare()
    for name in ("helm", "kubectl"):
        shell.program(name, f'exec {program_path(name)} "$@"')
    shell.program("ctr", _ctr(node))
    return shell


def _ctr(node: Node) -> str:
    """The harness has no overlayfs, and its containerd listens elsewhere: on a node of one's own neither is said."""
    inside = shlex.join(node.command(str(program_path("ctr")), f"--address={SOCKET}"))
    return f'exec {inside} "$1" "$2" "$3" "$4" --local --snapshotter={SNAPSHOTTER} "$PWD/$5"'
