"""`python -m bench.pods_per_second`: GPU pods created per second on a real API server.

Three namespaces of one cluster: one judged by Halfcard as shipped, one by webhooks that allow everything, one without
webhooks. The same pods are created in all of them, some dozens here and some dozens there, so that what else the
machine does falls on all alike, the API server's own collections of garbage too; the medians of the turns' ratios
count.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster.cluster import Cluster
from devcluster.control_plane.network import free_port
from devcluster.services.installation import Installation
from halfcard import names

from .creating import Creating
from .figures import Figure, Part, table, write_json
from .servers import ROOT

_OUT: Final = ROOT / "bench" / "out" / "pods_per_second.json"
_PAIRS: Final = 7
_PODS: Final = 3000
_SLICES: Final = 50
_CONNECTIONS: Final = 4
_TARGET: Final = 0.9
OURS, CONSTANT, NOBODY = "ours", "constant", "nobody"


@dataclass(frozen=True, slots=True)
class Turn:
    """Pods per second in each namespace, one after the other."""

    ours: float
    constant: float
    nobody: float


def main(argv: Sequence[str] | None = None) -> int:
    options = parser("pods_per_second", __doc__, pairs=_PAIRS, pods=_PODS, out=_OUT)
    options.add_argument("--unlike", action="store_true", help="every pod from a template of its own")
    arguments = options.parse_args(argv)
    with Cluster() as cluster:
        for name in (OURS, CONSTANT, NOBODY):
            cluster.create_namespace(name)
        installation = Installation(cluster, exempt=[CONSTANT, NOBODY])
        installation.add_replica()
        installation.register()
        install_constant(cluster, installation.registration())
        for name in ("kube-scheduler", "kube-controller-manager"):
            cluster.components[name].pause()  # what they do with pods is not what is measured
        with Creating(cluster, _CONNECTIONS, unlike=arguments.unlike) as creating:
            turns = list(_turns(creating, arguments.pairs, arguments.pods))
        asked = installation.calls(names.VALIDATE_PODS_PATH)
    part = _part(turns, asked=asked, pods=arguments.pods, unlike=arguments.unlike)
    print(table([part]))
    write_json([part], arguments.json)
    return 0


def parser(module: str, description: str | None, *, pairs: int, pods: int, out: Path) -> argparse.ArgumentParser:
    """Adds the arguments of a benchmark that creates pods in several namespaces in turn."""
    found = argparse.ArgumentParser(prog=f"python -m bench.{module}", description=description)
    found.add_argument("--pairs", type=int, default=pairs, metavar="N", help="default %(default)s")
    found.add_argument("--pods", type=int, default=pods, metavar="N", help="per namespace and turn, %(default)s")
    found.add_argument("--json", type=Path, default=out, metavar="FILE", help="default %(default)s")
    return found


def install_constant(cluster: Cluster, shipped: str, *, replicas: int = 1) -> None:
    """The shipped registration of pods, led to another service and one namespace."""
    folder = cluster.folder / "constant-tls"
    folder.mkdir()
    pair = cluster.authority.server(CONSTANT, [], names=[f"{CONSTANT}.{CONSTANT}.svc"])
    shutil.copy(pair.certificate, folder / "tls.crt")
    shutil.copy(pair.key, folder / "tls.key")
    for number in range(replicas):
        _start_constant(cluster, f"{CONSTANT}-{number}", folder)
    for configuration in yaml.safe_load_all(shipped):
        applied = cluster.kubectl("apply", "-f-", stdin=json.dumps(_for_constant(configuration)))
        if applied.code:
            raise RuntimeError(applied.stderr)


def _start_constant(cluster: Cluster, name: str, tls: Path) -> None:
    host = cluster.network.host_address
    port = free_port(host)
    command = (sys.executable, "-m", "bench.constant", str(tls), f"{host}:{port}")
    cluster.program(name, *command, environment={"PYTHONPATH": str(ROOT)})
    cluster.wait_until(lambda: listens(host, port), what="the constant webhook")
    cluster.expose(CONSTANT, CONSTANT, 443, port)


def listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def _for_constant(configuration: dict[str, Any]) -> dict[str, Any]:
    webhooks = [each for each in configuration["webhooks"] if each["clientConfig"]["service"]["path"].endswith("/pods")]
    for each in webhooks:
        each["clientConfig"]["service"] |= {"namespace": CONSTANT, "name": CONSTANT}
        each["namespaceSelector"] = {"matchLabels": {names.NAMESPACE_LABEL: CONSTANT}}
        each["failurePolicy"] = "Fail"  # or one that is not reached would look fast
    return {**configuration, "metadata": {"name": CONSTANT}, "webhooks": webhooks}


def _turns(creating: Creating, pairs: int, pods: int) -> Iterator[Turn]:
    """Runs the slices; the first is not counted, and the namespaces take turns in starting."""
    order = [OURS, CONSTANT, NOBODY]
    for turn in range(pairs + 1):
        seconds = dict.fromkeys(order, 0.0)
        for _ in range(_SLICES):
            for name in order:
                seconds[name] += creating.seconds(name, pods // _SLICES)
            order.reverse()
        if turn:
            rates = {name: pods // _SLICES * _SLICES / taken for name, taken in seconds.items()}
            yield _printed(Turn(rates[OURS], rates[CONSTANT], rates[NOBODY]), turn, pairs)


def _printed(turn: Turn, number: int, of: int) -> Turn:
    line = f"turn {number} of {of}: ours {turn.ours:.0f}, constant {turn.constant:.0f}, nobody {turn.nobody:.0f} pods/s"
    print(line, file=sys.stderr)
    return turn


def _part(turns: Sequence[Turn], *, asked: int, pods: int, unlike: bool) -> Part:
    ratio = statistics.median(turn.ours / turn.constant for turn in turns)
    figures = [
        Figure("pods created per second, judged by Halfcard", statistics.median(t.ours for t in turns), "/s", digits=0),
        Figure("... by webhooks that say yes", statistics.median(t.constant for t in turns), "/s", digits=0),
        Figure("... by nobody", statistics.median(t.nobody for t in turns), "/s", digits=0),
        Figure("Halfcard to yes, median of the pairs", ratio, "times"),
        Figure("yes to nobody", statistics.median(t.constant / t.nobody for t in turns), "times"),
    ]
    notes = [
        f"target: Halfcard to yes >= {_TARGET}: {'met' if ratio >= _TARGET else 'MISSED'}",
        f"{len(turns)} turns of {pods} pods on {_CONNECTIONS} connections; Halfcard validated {asked} pods",
        f"the pods come from {'a template each' if unlike else 'one template'}",
    ]
    return Part("Pods on a real API server", figures, notes)


if __name__ == "__main__":
    sys.exit(main())
