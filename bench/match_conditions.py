"""`python -m bench.match_conditions`: what the webhooks' match conditions cost the API server for pods without GPU.

Dry runs of the same create in three namespaces take turns: in one the conditions are evaluated, in one the webhooks'
only condition is `false`, and one is exempt. The API server converts a pod for every webhook with conditions, which the
second measures. The CPU time of the API server counts, not the time of the answer. No replica of the webhook runs: a
pod that is sent to it fails.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from devcluster.cluster import Cluster
from devcluster.services.installation import Installation
from halfcard import names
from tests.builders import PodBuilder, pod
from tests.cluster.manifests import complete

from .creating import connection, create
from .figures import Figure, Part, table, write_json
from .pods_per_second import parser
from .servers import ROOT

_OUT: Final = ROOT / "bench" / "out" / "match_conditions.json"
_PAIRS: Final = 8
_MOST_CALLS: Final = 100
_BYTES: Final = 1_000_000
_AT_MOST: Final = 1.2
_TICKS: Final = os.sysconf("SC_CLK_TCK")
JUDGED, CONSTANT, EXEMPT = "judged", "constant", "exempt"


def _many(count: int) -> dict[str, str]:
    return {f"example.com/setting-{number}": "x" for number in range(count)}


def _containers(count: int) -> PodBuilder:
    built = pod()
    for _ in range(count):
        built = built.container(limits={"cpu": "1"}, env=[{"name": "A", "value": "b"}])
    return built


_VOLUMES: Final = [{"name": f"v{number}", "hostPath": {"path": f"/data/{number}"}} for number in range(1000)]
_MOUNTS: Final = [{"name": "v0", "mountPath": f"/data/{number}"} for number in range(5000)]
_SOURCES: Final = [{"prefix": f"A{number}_", "secretRef": {"name": "s"}} for number in range(5000)]
PODS: Final[Mapping[str, PodBuilder]] = {
    "a plain pod": pod().container(),
    "8,000 annotations": pod().container().annotated(_many(8000)),
    "8,000 labels": pod().container().labelled(_many(8000)),
    "500 containers": _containers(500),
    "10,000 variables": pod().container(env=[{"name": f"V{number}", "value": "x"} for number in range(10_000)]),
    "5,000 sources of variables": pod().container(envFrom=_SOURCES),
    "1,000 volumes": pod().container().specified(volumes=_VOLUMES),
    "5,000 mounts": pod().container(volumeMounts=_MOUNTS).specified(volumes=_VOLUMES[:1]),
}


class Cost(NamedTuple):
    """Milliseconds of CPU for each create."""

    judged: float
    constant: float
    exempt: float


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser("match_conditions", __doc__, pairs=_PAIRS, pods=_MOST_CALLS, out=_OUT).parse_args(argv)
    with Cluster() as cluster:
        for name in Cost._fields:
            cluster.create_namespace(name)
        _register(cluster)
        costs = {name: _cost(cluster, built, arguments.pairs, arguments.pods) for name, built in PODS.items()}
    part = Part("Match conditions on a real API server", list(_figures(costs)))
    print(table([part]))
    write_json([part], arguments.json)
    return 0


def _register(cluster: Cluster) -> None:
    shipped = list(yaml.safe_load_all(Installation(cluster, exempt=[CONSTANT, EXEMPT]).registration()))
    for configuration in (*shipped, *map(_constant, shipped)):
        applied = cluster.kubectl("apply", "-f-", stdin=json.dumps(configuration))
        if applied.code:
            raise RuntimeError(applied.stderr)
    for name in ("kube-scheduler", "kube-controller-manager"):
        cluster.components[name].pause()


def _constant(configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the same webhooks for one namespace, with one condition that is false."""
    own = {
        "matchConditions": [{"name": "never", "expression": "false"}],
        "namespaceSelector": {"matchLabels": {names.NAMESPACE_LABEL: CONSTANT}},
    }
    webhooks = [{**each, **own} for each in configuration["webhooks"]]
    return {**configuration, "metadata": {"name": CONSTANT}, "webhooks": webhooks}


def _cost(cluster: Cluster, built: PodBuilder, pairs: int, most: int) -> Cost:
    """Measures the namespaces in turns; the first turn is not counted."""
    body = json.dumps(complete(built)).encode()
    calls = min(most, max(1, _BYTES // len(body)))
    used = dict.fromkeys(Cost._fields, 0.0)
    api = connection(cluster)
    for turn in range(pairs + 1):
        for name in used:
            seconds = _cpu_seconds(cluster, api, name, [body] * calls)
            used[name] += seconds if turn else 0
    api.close()
    cost = Cost(*(seconds / pairs / calls * 1000 for seconds in used.values()))
    print(f"  {len(body):,} bytes: {', '.join(f'{each:.1f}' for each in cost)} ms", file=sys.stderr)
    return cost


def _cpu_seconds(cluster: Cluster, api: HTTPSConnection, namespace: str, bodies: Sequence[bytes]) -> float:
    pid = cluster.components["kube-apiserver"].pid
    before = _ticks(pid)
    for body in bodies:
        create(cluster, api, f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body)
    return (_ticks(pid) - before) / _TICKS


def _ticks(pid: int) -> int:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[11:13]
    return int(user) + int(system)


def _figures(costs: Mapping[str, Cost]) -> Iterator[Figure]:
    for name, cost in costs.items():
        yield Figure(f"{name}: CPU of a create", cost.judged, "ms", digits=1)
        yield Figure("... exempt", cost.exempt, "ms", digits=1)
        yield Figure("... as a ratio", cost.judged / cost.exempt, "times", at_most=_AT_MOST)
        yield Figure("... of conditions that are `false`", cost.constant / cost.exempt, "times")


if __name__ == "__main__":
    sys.exit(main())
