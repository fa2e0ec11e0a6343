# ruff: noqa: T201 - what it prints is its output
"""A large cluster under load: `python -m tests.cluster.load --nodes 5000 --pods 20000` prints a table and JSON.

API server and scheduler are real, the nodes are kwok's. The rates depend on the machine: compare only within one run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from devcluster.cluster import Cluster
from devcluster.control_plane.loader import CONNECTIONS, LoadGenerator, Tally
from devcluster.errors import CannotStartError, NotReadyError
from devcluster.fake_nodes.gpu_nodes import fleet
from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK

from .fake_pods import Counts, creations, deletions, wait_for_counts

_RATE_FLAGS: Final = ("--kube-api-qps=5000", "--kube-api-burst=5000")
NO_RATE_LIMITS: Final[Mapping[str, Sequence[str]]] = {
    "kube-scheduler": _RATE_FLAGS,  # by itself it binds 50 pods a second
    "kube-controller-manager": _RATE_FLAGS,  # by itself it takes the taint not-ready off 20 nodes a second
}

_SPACE: Final = "load"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def measure(load: LoadGenerator, cluster: Cluster, *, nodes: int, pods: int) -> Iterator[Tally]:
    """Yields the tally of each step; times of pods start with the first create or delete."""
    yield from cluster.add_gpu_nodes(fleet(nodes), load)
    cluster.create_namespace(_SPACE)
    began = time.monotonic()

    def reached(what: str, until: Callable[[Counts], bool]) -> Tally:
        wait_for_counts(load, _SPACE, until, pods=pods)
        return Tally(what, pods, time.monotonic() - began)

    yield load.send(creations(_SPACE, pods), what="pods created", total=pods)
    yield reached("pods scheduled", lambda counts: counts.scheduled == pods)
    yield reached("pods running", lambda counts: counts.running == pods)
    began = time.monotonic()
    yield load.send(deletions(_SPACE, pods), what="pods deleted", total=pods)
    yield reached("pods gone", lambda counts: counts.pods == 0)


def table(tallies: Sequence[Tally]) -> str:
    rows = [f"{'':<16}{'count':>9}{'seconds':>10}{'per second':>12}"]
    rows += [f"{each.what:<16}{each.count:>9,}{each.seconds:>10.1f}{each.per_second:>12.0f}" for each in tallies]
    return "\n".join(rows)


def report(tallies: Sequence[Tally], connections: int) -> str:
    machine = {"cpus": os.cpu_count(), "kernel": platform.release()}
    steps = [{"what": each.what, "count": each.count, "seconds": round(each.seconds, 2)} for each in tallies]
    return json.dumps({"machine": machine, "connections": connections, "steps": steps}, indent=2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.load", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000, help="default %(default)s")
    parser.add_argument("--pods", type=int, default=20000, help="default %(default)s")
    parser.add_argument("--connections", type=int, default=CONNECTIONS, help="default %(default)s")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    wanted = _parser().parse_args(arguments)
    tallies: list[Tally] = []
    try:
        with Cluster(flags=NO_RATE_LIMITS) as cluster:
            load = LoadGenerator(cluster, wanted.connections, say)
            for tally in measure(load, cluster, nodes=wanted.nodes, pods=wanted.pods):
                say(str(tally))
                tallies.append(tally)
    except (CannotStartError, NotReadyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_CANNOT_START
    print(table(tallies), report(tallies, wanted.connections), sep="\n\n")
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
