"""kwok as a program of the cluster: thousands of nodes and pods that every component but a kubelet sees.

Law: it handles the nodes that carry its mark, and no others; real nodes may exist beside them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..build.binaries import program_path
from ..control_plane.control_plane import ControlPlane
from ..control_plane.loader import LoadGenerator, LoadRequest, Tally
from ..control_plane.network import free_port
from ..objects import Object, is_ready
from .gpu_nodes import MARK, GpuNodes, gpu_nodes
from .slow_counting import count_until

_STAGES: Final = Path(__file__).parent / "kwok_stages.yaml"
_POD_NETWORK: Final = "10.128.0.0/9"  # addresses are numbers here, nothing is routed; eight million are enough
_LEASE_S: Final = 600  # a quarter of it between renewals: 5,000 nodes then write 33 times a second, not 500
_WORKERS: Final = 16
_SECONDS_AT_LEAST: Final = 60.0
_SECONDS_PER_NODE: Final = 0.1


def _configuration(*, health_address: str) -> str:
    """Returns kwok's options as YAML documents, including those without a flag, and the stages."""
    options = {
        "cidr": _POD_NETWORK,
        "manageNodesWithAnnotationSelector": ",".join(f"{key}={value}" for key, value in MARK.items()),
        "nodeLeaseDurationSeconds": _LEASE_S,
        "nodeLeaseParallelism": _WORKERS,
        "nodePlayStageParallelism": _WORKERS,
        "podPlayStageParallelism": _WORKERS,
        "serverAddress": health_address,
    }
    kind = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options}
    return f"{json.dumps(kind)}\n---\n{_STAGES.read_text()}"


def _schedulable(node: Object) -> bool:
    return is_ready(node) and not node["spec"].get("taints")


class Kwok:
    """The running kwok of a cluster; it ends with the cluster."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        host = cluster.network.host_address
        health_address = f"{host}:{free_port(host)}"
        configuration = cluster.folder / "kwok.yaml"
        configuration.write_text(_configuration(health_address=health_address))
        arguments = (f"--kubeconfig={cluster.admin.kubeconfig}", f"--config={configuration}", "--v=WARN")
        self.program = cluster.program("kwok", str(program_path("kwok")), *arguments)
        self.health_url = f"http://{health_address}/healthz"

    def add_nodes(self, load: LoadGenerator, table: Sequence[GpuNodes]) -> list[Tally]:
        """Creates nodes and waits until they can take pods; returns how long both took."""
        nodes = list(gpu_nodes(table))
        requests = (LoadRequest("POST", "/api/v1/nodes", node) for node in nodes)
        began = time.monotonic()
        created = load.send(requests, what="nodes created", total=len(nodes))
        names = {node["metadata"]["name"] for node in nodes}
        count_until(
            lambda: self._count(names),
            lambda ready: ready == len(nodes),
            what=f"of {len(nodes):,} nodes ready",
            seconds=_SECONDS_AT_LEAST + _SECONDS_PER_NODE * len(nodes),
            say=load.say,
            details=self._cluster.components.log_tails,
        )
        return [created, Tally("nodes ready", len(nodes), time.monotonic() - began)]

    def _count(self, names: set[str]) -> int:
        nodes = self._cluster.request("GET", "/api/v1/nodes").must()["items"]
        return sum(_schedulable(node) for node in nodes if node["metadata"]["name"] in names)
