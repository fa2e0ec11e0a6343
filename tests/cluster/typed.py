"""Runs the commands of a page in a shell with the real kubectl."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from devcluster.build.binaries import program_path
from devcluster.cluster import Cluster
from tests.docs.pages import Fence
from tests.docs.shell import Shell


def run_commands(cluster: Cluster, fence: Fence, folder: Path) -> None:
    """Runs the commands of a fence as administrator of the cluster; the commands may write to `folder`."""
    shell = Shell(folder)
    shell.prepare()
    (folder / "bin" / "kubectl").symlink_to(program_path("kubectl"))
    done = shell.run(f"export KUBECONFIG={cluster.admin.kubeconfig}\n{dedent(fence.text)}")
    assert done.returncode == 0, done.stderr
