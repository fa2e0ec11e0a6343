"""`python -m bench.scheduled_per_second`: GPU pods scheduled per second by the stock scheduler, and how fast we start.

One cluster of kwok's nodes; the scheduler asks Halfcard's extender as shipped, and in the next turn one that agrees to
everything. The same pods come in all turns, and the medians of the turns' ratios count.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from devcluster.cluster import Cluster
from devcluster.control_plane.loader import LoadGenerator, LoadRequest
from devcluster.control_plane.network import free_port
from devcluster.fake_nodes.gpu_nodes import GpuNodes, gpu_nodes
from devcluster.services.extender_installation import ExtenderInstallation
from halfcard import names
from tests.cluster.load import NO_RATE_LIMITS

from .figures import Figure, Part, table, write_json
from .pods_per_second import listens
from .servers import ROOT, resident_mb

_OUT: Final = ROOT / "bench" / "out" / "scheduled_per_second.json"
_TARGET: Final = 0.9
_MOST_START_S: Final = 10.0
_MOST_START_MB: Final = 300.0
_PER_CARD: Final = 4
OURS, CONSTANT = "ours", "constant"


@dataclass(frozen=True, slots=True)
class Turn:
    """Pods per second, one after the other."""

    ours: float
    constant: float


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    with Cluster(flags=NO_RATE_LIMITS) as cluster, ExtenderInstallation(cluster) as extender:
        replica = extender.add_replica()
        cluster.add_gpu_nodes([GpuNodes(arguments.nodes, "Tesla-T4", 15360)], LoadGenerator(cluster, say=_say))
        addresses = {OURS: (replica.host, replica.port), CONSTANT: _start_constant(extender)}
        turns = list(_turns(extender, addresses, arguments.pairs, arguments.pods))
    parts = [_rates(turns, nodes=arguments.nodes, pods=arguments.pods)]
    with Cluster() as cluster, ExtenderInstallation(cluster) as extender:
        parts.append(_start(extender, nodes=arguments.start_nodes, pods=arguments.start_pods))
    print(table(parts))
    write_json(parts, arguments.json)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.scheduled_per_second", description=__doc__)
    for name, count, what in (
        ("nodes", 2000, "with 8 cards each"),
        ("pairs", 5, "turns of either"),
        ("pods", 500, "in a turn"),
        ("start-nodes", 5000, "where the start is measured"),
        ("start-pods", 20000, "that are bound there; 2,000 take a tenth of the time to make"),
    ):
        parser.add_argument(f"--{name}", type=int, default=count, metavar="N", help=f"{what} (default %(default)s)")
    parser.add_argument("--json", type=Path, default=_OUT, metavar="FILE", help="default %(default)s")
    return parser


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# --- pods per second --------------------------------------------------------------------------------------------------


def _start_constant(extender: ExtenderInstallation) -> tuple[str, int]:
    cluster, host = extender.cluster, extender.cluster.network.host_address
    port = free_port(host)
    files = (str(extender.pair), str(cluster.authority.certificate), str(extender.account.kubeconfig))
    command = (sys.executable, "-m", "bench.constant_extender", *files, f"{host}:{port}")
    cluster.program(CONSTANT, *command, environment={"PYTHONPATH": str(ROOT)})
    cluster.wait_until(lambda: listens(host, port), what="the constant extender")
    return host, port


def _turns(
    extender: ExtenderInstallation, addresses: dict[str, tuple[str, int]], pairs: int, pods: int
) -> Iterator[Turn]:
    """Runs the turns; the first is not counted, and the two sides take turns in starting."""
    order = [OURS, CONSTANT]
    for turn in range(pairs + 1):
        rates = {name: _rate(extender, f"{name}-{turn}", addresses[name], pods) for name in order}
        order.reverse()
        if turn:
            _say(f"turn {turn} of {pairs}: ours {rates[OURS]:.0f}, constant {rates[CONSTANT]:.0f} pods/s")
            yield Turn(rates[OURS], rates[CONSTANT])


def _rate(extender: ExtenderInstallation, namespace: str, address: tuple[str, int], pods: int) -> float:
    """Measures from the moment the scheduler may start to the moment the last pod has a node."""
    cluster = extender.cluster
    cluster.create_namespace(namespace)
    configuration = extender.recommended(address)
    del configuration["extenders"][0]["preemptVerb"]
    extender.schedule_by(configuration)
    scheduler = cluster.components["kube-scheduler"]
    path = f"/api/v1/namespaces/{namespace}/pods"
    _place_one(cluster, path)  # connections are open and caches are full from here on
    scheduler.pause()
    bodies = (_pod(f"p{number}") for number in range(pods))
    LoadGenerator(cluster).send((LoadRequest("POST", path, body) for body in bodies), what="pods", total=pods)
    began = time.perf_counter()
    scheduler.resume()
    cluster.wait_until(lambda: not _waiting(cluster, path), what="all to be scheduled", seconds=300)
    taken = time.perf_counter() - began
    cluster.request("DELETE", path).must()
    cluster.wait_until(lambda: not _items(cluster, f"{path}?limit=1"), what="all to be gone", seconds=300)
    return pods / taken


def _place_one(cluster: Cluster, path: str) -> None:
    cluster.request("POST", path, _pod("first")).must()
    cluster.wait_until(lambda: not _waiting(cluster, path), what="the first pod to be scheduled", seconds=60)


def _waiting(cluster: Cluster, path: str) -> bool:
    """Asks for one pod without a node only: the question must cost next to nothing."""
    return bool(_items(cluster, f"{path}?fieldSelector=spec.nodeName%3D&limit=1"))


def _items(cluster: Cluster, path: str) -> list[Any]:
    found: list[Any] = cluster.request("GET", path).must()["items"]
    return found


def _pod(name: str, **fields: Any) -> dict[str, Any]:
    asks = {names.VCUDA_CORE: "20", names.VCUDA_MEMORY: "10"}
    container = {"name": "main", "image": "none", "resources": {"limits": asks, "requests": asks}}
    spec = {"containers": [container], "automountServiceAccountToken": False, **fields}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _rates(turns: Sequence[Turn], *, nodes: int, pods: int) -> Part:
    ratio = statistics.median(turn.ours / turn.constant for turn in turns)
    figures = [
        Figure("pods scheduled per second, by Halfcard", statistics.median(t.ours for t in turns), "/s", digits=0),
        Figure("... by one that agrees", statistics.median(t.constant for t in turns), "/s", digits=0),
        Figure("Halfcard to the other, median of the pairs", ratio, "times"),
    ]
    notes = [
        f"target: >= {_TARGET}: {'met' if ratio >= _TARGET else 'MISSED'}",
        f"{len(turns)} turns of {pods} pods on {nodes} nodes, all of which are scored",
    ]
    return Part("Pods through the stock scheduler", figures, notes)


# --- the start --------------------------------------------------------------------------------------------------------


def _start(extender: ExtenderInstallation, *, nodes: int, pods: int) -> Part:
    cluster = extender.cluster
    for name in ("kube-scheduler", "kube-controller-manager"):
        cluster.components[name].pause()
    load = LoadGenerator(cluster, say=_say)
    made = list(gpu_nodes([GpuNodes(nodes, "Tesla-T4", 15360)]))
    load.send((LoadRequest("POST", "/api/v1/nodes", node) for node in made), what="nodes", total=nodes)
    homes = itertools.cycle(node["metadata"]["name"] for node in made)
    path = "/api/v1/namespaces/default/pods"
    bound = (_bound(f"p{number}", next(homes), number) for number in range(pods))
    load.send((LoadRequest("POST", path, pod) for pod in bound), what="pods", total=pods)
    began = time.perf_counter()
    replica = extender.add_replica(within_s=120)
    taken = time.perf_counter() - began
    figures = [
        Figure("from the command to ready", taken, "s", _MOST_START_S),
        Figure("memory when ready", resident_mb(replica.program.pid), "MB", _MOST_START_MB, digits=0),
    ]
    return Part(f"Start beside {nodes:,} nodes and {pods:,} pods", figures)


def _bound(name: str, node: str, number: int) -> dict[str, Any]:
    """A pod that was bound long ago."""
    card = str(number // _PER_CARD % 8)
    pod = _pod(name, nodeName=node)
    record = f'{{"node":"{node}","cards":{{"main":["{card}"]}}}}'
    pod["metadata"]["annotations"] = {names.PLACEMENT: record}
    return pod


if __name__ == "__main__":
    sys.exit(main())
