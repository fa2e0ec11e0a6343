"""Installs Halfcard's chart with the real helm and the commands of docs/install.md, and loads its image on a node."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deploy.image.__main__ import main as build
from devcluster.build.binaries import program_path
from devcluster.cluster import Cluster
from devcluster.control_plane.client import CommandResult, run
from devcluster.errors import CannotStartError
from devcluster.nodes.containerd import SNAPSHOTTER, SOCKET
from devcluster.nodes.images import write_scheduler_image
from devcluster.nodes.node import RealNode
from halfcard import names

_ROOT: Final = Path(__file__).parents[2]
_TIMEOUT: Final = "--timeout=100s"


def load_image(node: RealNode) -> None:
    """Builds Halfcard's image from the checkout and imports it; its base is built only once."""
    archive = node.folder / "halfcard.tar"
    assert build([str(archive)]) == 0
    images(node, "import", "--local", f"--snapshotter={SNAPSHOTTER}", str(archive))
    archive.unlink()


def load_scheduler_image(node: RealNode) -> None:
    """Imports kube-scheduler of the cluster's version, under the name that Kubernetes publishes it."""
    archive = node.folder / "kube-scheduler.tar"
    write_scheduler_image(archive)
    images(node, "import", "--local", f"--snapshotter={SNAPSHOTTER}", str(archive))
    archive.unlink()


def images(node: RealNode, *words: str) -> None:
    """Runs `ctr images` on a node."""
    done = node.run(str(program_path("ctr")), f"--address={SOCKET}", "--namespace=k8s.io", "images", *words)
    if done.code:
        raise CannotStartError(f"containerd does not take Halfcard's image: {done.stderr}")


@dataclass(frozen=True, slots=True)
class Helm:
    cluster: Cluster

    def __call__(self, *arguments: str) -> CommandResult:
        access = f"--kubeconfig={self.cluster.admin.kubeconfig}"
        return run(str(program_path("helm")), *arguments, access, home=self.cluster.folder)

    def must(self, *arguments: str) -> str:
        done = self(*arguments)
        assert done.code == 0, f"{done.stderr}\n{self._pods()}"
        return done.stdout

    def install(self, values: Mapping[str, Any], checkout: Path = _ROOT) -> None:
        """Returns when all pods are ready."""
        self.must(*documented("install", checkout), *self._values(values), _TIMEOUT)

    def upgrade(self, values: Mapping[str, Any]) -> None:
        self.must(*documented("upgrade"), *self._values(values), _TIMEOUT)

    def rollback(self) -> None:
        """Undoes the last upgrade."""
        self.must(*documented("rollback"), _TIMEOUT)

    def uninstall(self) -> None:
        """Returns when its objects are gone."""
        self.must(*documented("uninstall"), _TIMEOUT)

    def _values(self, values: Mapping[str, Any]) -> tuple[str, str]:
        file: Path = self.cluster.folder / "values.json"
        file.write_text(json.dumps(values))
        return "--values", str(file)

    def _pods(self) -> str:
        return self.cluster.kubectl("describe", "pods", f"--namespace={names.NAMESPACE}").stdout


def documented(verb: str, checkout: Path = _ROOT) -> list[str]:
    """Returns the helm command of the page, with absolute paths."""
    (words,) = re.findall(rf"^helm ({verb} .+[^\\])$", (checkout / "docs" / "install.md").read_text(), re.MULTILINE)
    return [str(checkout / word) if "/" in word else word for word in words.split()]
