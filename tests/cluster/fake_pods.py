"""Pods for fake nodes: their requests, and counts of those that are scheduled and running."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, Final

from devcluster.control_plane.control_plane import ControlPlane
from devcluster.control_plane.loader import LoadGenerator, LoadRequest
from devcluster.fake_nodes.slow_counting import count_until
from devcluster.objects import Object
from halfcard import names

ASKS: Final[tuple[Mapping[str, int], ...]] = (
    {names.VCUDA_CORE: 30, names.VCUDA_MEMORY: 20},
    {names.VCUDA_CORE: 10, names.VCUDA_MEMORY: 4},
    {names.VCUDA_CORE: 50, names.VCUDA_MEMORY: 28},
    {names.VCUDA_CORE: 20, names.VCUDA_MEMORY: 12},
    {names.VCUDA_CORE: 100},
    {names.VCUDA_CORE: 30, names.VCUDA_MEMORY: 20},
    {names.VCUDA_CORE: 200},
    {names.ALIYUN_GPU_MEM: 3},
    {names.VOLCANO_GPU_MEMORY: 2048},
    {names.NVIDIA_GPU: 1},
)
"""The requests of the pods in turn, in the proportions of gpu_nodes.fleet."""

_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_SECONDS_AT_LEAST: Final = 120.0
_SECONDS_PER_POD: Final = 0.2


def gpu_pods(count: int) -> Iterator[Object]:
    return (_pod(f"load-{number:05}", request) for number, request in enumerate(islice(cycle(ASKS), count)))


def _pod(name: str, request: Mapping[str, int]) -> Object:
    amounts = {resource: str(amount) for resource, amount in request.items()}
    container = {"name": "main", "image": "none", "resources": {"limits": amounts, "requests": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "automountServiceAccountToken": False},
    }


def creations(namespace: str, pods: int) -> Iterator[LoadRequest]:
    return (LoadRequest("POST", f"/api/v1/namespaces/{namespace}/pods", pod) for pod in gpu_pods(pods))


def deletions(namespace: str, pods: int) -> Iterator[LoadRequest]:
    each = f"/api/v1/namespaces/{namespace}/pods"
    return (LoadRequest("DELETE", f"{each}/{pod['metadata']['name']}") for pod in gpu_pods(pods))


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of pods in one namespace, of those with a node, and of those that run."""

    pods: int = 0
    scheduled: int = 0
    running: int = 0

    def __str__(self) -> str:
        return f"{self.pods:,} pods, {self.scheduled:,} with a node, {self.running:,} running"


def count_pods(cluster: ControlPlane, namespace: str) -> Counts:
    """Counts pods in the table that kubectl prints, which is a tenth of the size of the pods."""
    path = f"/api/v1/namespaces/{namespace}/pods?includeObject=None"
    return counted(cluster.client.request(cluster.admin, "GET", path, accept=_TABLE).must())


def counted(table: Any) -> Counts:
    columns = [column["name"] for column in table["columnDefinitions"]]
    status, node = columns.index("Status"), columns.index("Node")
    cells = [row["cells"] for row in table["rows"] or ()]
    return Counts(
        pods=len(cells),
        scheduled=sum(row[node] != "<none>" for row in cells),
        running=sum(row[status] == "Running" for row in cells),
    )


def wait_for_counts(load: LoadGenerator, namespace: str, until: Callable[[Counts], bool], *, pods: int) -> Counts:
    """Waits for the counts with a deadline that depends on the number of pods."""
    return count_until(
        lambda: count_pods(load.cluster, namespace),
        until,
        what=f"of {pods:,}",
        seconds=_SECONDS_AT_LEAST + _SECONDS_PER_POD * pods,
        say=load.say,
        details=load.cluster.components.log_tails,
    )
