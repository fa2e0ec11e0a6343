"""`python -m bench.agent_starts`: pods with shares of cards started by a real kubelet, beside pods without any.

From the moment when the first is created to the moment when all run. Both take turns, and the median of the pairs'
ratios counts. All are bound to the node and have their records when they come: webhook and scheduler are not measured.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from devcluster.cluster import Cluster
from devcluster.control_plane.loader import LoadGenerator, LoadRequest
from devcluster.nodes.images import BUSYBOX
from devcluster.nodes.node import RealNode
from halfcard import names
from tests.cluster.agent import Agent
from tests.cluster.load import NO_RATE_LIMITS

from .figures import Figure, Part, table, write_json
from .servers import ROOT, cpu_s, resident_mb

_OUT: Final = ROOT / "bench" / "out" / "agent_starts.json"
_MOST_RATIO: Final = 1.25
_MOST_MB: Final = 80.0
_MOST_IDLE: Final = 0.5
_CARDS: Final = 2
_CORES, _UNITS = 5, 2
_WITHIN_S: Final = 120.0
_RETRIED: Final = "unresolvable CDI devices"
_SECONDS: Final = re.compile(r'^halfcard_agent_answer_seconds_(sum|count)\{call="(\w+)"\} (\S+)$', re.MULTILINE)
WITH, WITHOUT = "with", "without"


class Turn(NamedTuple):
    """Seconds."""

    gpu: float
    plain: float


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    with Cluster(flags=NO_RATE_LIMITS) as cluster, RealNode(cluster, "gpu-a") as node, Agent(node) as agent:
        agent.wait_offered(names.VCUDA_CORE, 100 * _CARDS)
        turns = list(_turns(agent, arguments.pairs, arguments.pods))
        parts = [_starts(turns, arguments.pods), _answers(agent), _beside(agent, arguments)]
    print(table(parts))
    write_json(parts, arguments.json)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.agent_starts", description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, metavar="N", help="default %(default)s")
    parser.add_argument("--pods", type=int, default=40, metavar="N", help="of either in a pair, %(default)s")
    parser.add_argument("--idle", type=float, default=30.0, metavar="SECONDS", help="watched afterwards, %(default)s")
    parser.add_argument("--json", type=Path, default=_OUT, metavar="FILE", help="default %(default)s")
    return parser


# --- the pairs --------------------------------------------------------------------------------------------------------


def _turns(agent: Agent, pairs: int, pods: int) -> Iterator[Turn]:
    """Runs the turns; the first is not counted, and the two sides take turns in starting."""
    cluster, order = agent.node.cluster, [WITH, WITHOUT]
    for name in order:
        cluster.create_namespace(name)
    for turn in range(pairs + 1):
        taken = {name: _start(agent, name, pods if turn else pods // 4) for name in order}
        order.reverse()
        if turn:
            print(f"pair {turn} of {pairs}: {taken[WITH]:.2f} s, {taken[WITHOUT]:.2f} s", file=sys.stderr, flush=True)
            yield Turn(taken[WITH], taken[WITHOUT])


def _start(agent: Agent, namespace: str, pods: int) -> float:
    cluster, node = agent.node.cluster, agent.node.name
    path = f"/api/v1/namespaces/{namespace}/pods"
    requests = [LoadRequest("POST", path, _pod(number, node, shares=namespace == WITH)) for number in range(pods)]
    began = time.perf_counter()
    LoadGenerator(cluster).send(requests, what="pods", total=pods)
    _wait_running(cluster, path, pods)
    taken = time.perf_counter() - began
    cluster.request("DELETE", path).must()
    cluster.wait_until(lambda: not cluster.request("GET", path).must()["items"], what="all to end", seconds=_WITHIN_S)
    return taken


def _wait_running(cluster: Cluster, path: str, pods: int) -> None:
    running, others = (f"{path}?fieldSelector=status.phase{is_}Running" for is_ in ("%3D", "%21%3D"))
    cluster.wait_until(
        lambda: len(cluster.request("GET", running).must()["items"]) == pods,
        what=f"{pods} pods to run",
        seconds=_WITHIN_S,
        details=lambda: json.dumps([each["status"] for each in cluster.request("GET", others).must()["items"]]),
    )


def _pod(number: int, node: str, *, shares: bool) -> dict[str, Any]:
    asks = {names.VCUDA_CORE: str(_CORES), names.VCUDA_MEMORY: str(_UNITS)} if shares else {}
    record = {names.PLACEMENT: json.dumps({"node": node, "cards": {"main": [str(number % _CARDS)]}})} if shares else {}
    container = {
        "name": "main",
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sleep", "infinity"],
        "resources": {"limits": asks, "requests": asks},
    }
    spec = {
        "nodeName": node,
        "containers": [container],
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,  # with 0 they are gone before their containers are
        "tolerations": [{"operator": "Exists"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "annotations": record},
        "spec": spec,
    }


def _starts(turns: Sequence[Turn], pods: int) -> Part:
    figures = [
        Figure("with shares", statistics.median(turn.gpu for turn in turns), "s"),
        Figure("without", statistics.median(turn.plain for turn in turns), "s"),
        Figure("ratio, median of the pairs", statistics.median(t.gpu / t.plain for t in turns), "x", _MOST_RATIO),
    ]
    ratios = ", ".join(f"{turn.gpu / turn.plain:.2f}" for turn in turns)
    return Part(f"From creation until all of {pods} pods run on one node", figures, [f"ratios of the pairs: {ratios}"])


# --- the agent --------------------------------------------------------------------------------------------------------


def _answers(agent: Agent) -> Part:
    """Reports how long kubelet waited on average, and how often the runtime had to be asked again."""
    _, text = agent.get(names.METRICS_PATH, agent.token())
    found = {(call, what): float(value) for what, call, value in _SECONDS.findall(text)}
    figures = []
    for call in ("allocate", "prestart"):
        number = found[call, "count"]
        figures.append(Figure(f"{call}, mean of {number:,.0f}", found[call, "sum"] / number * 1000, "ms"))
    log = agent.node.kubelet.log.read_text(encoding="utf-8", errors="replace")
    figures.append(Figure(f'"{_RETRIED}" in the log of kubelet', log.count(_RETRIED), "lines", digits=0))
    return Part("What the agent answered meanwhile", figures)


def _beside(agent: Agent, arguments: argparse.Namespace) -> Part:
    """Measures idle CPU with running pods and none that starts or ends."""
    cluster, path, pods = agent.node.cluster, f"/api/v1/namespaces/{WITH}/pods", arguments.pods
    requests = [LoadRequest("POST", path, _pod(number, agent.node.name, shares=True)) for number in range(pods)]
    LoadGenerator(cluster).send(requests, what="pods", total=pods)
    _wait_running(cluster, path, pods)
    pid = agent.pid
    began = cpu_s(pid)
    time.sleep(arguments.idle)
    used = cpu_s(pid) - began
    figures = [
        Figure(f"CPU of {arguments.idle:.0f} s, of one core", used / arguments.idle * 100, "%", _MOST_IDLE),
        Figure("resident memory", resident_mb(pid), "MB", _MOST_MB, 1),
    ]
    return Part(f"The agent beside {pods} pods that run", figures)


if __name__ == "__main__":
    sys.exit(main())
