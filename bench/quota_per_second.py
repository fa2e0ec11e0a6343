"""`python -m bench.quota_per_second`: GPU pods created per second against one GpuQuota, beside native quota.

Two namespaces of one cluster: one judged by three replicas of Halfcard's webhook that share one ledger, one by three of
a webhook that says yes to everything, and a ResourceQuota. The same pods are created in both in turn, and the median of
the pairs' ratios counts. Then a thousand namespaces get a quota each.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
import timeit
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from devcluster.cluster import Cluster
from devcluster.services.installation import Installation, Replica
from devcluster.services.quota_installation import QuotaInstallation, path_of, quota
from halfcard import names
from halfcard.quota.ledger import MAX_RESERVATIONS, Entry, Ledger, StoredPods, commit, reserve, sum_of
from kube.ledger.ledger_store import ConfigMapMetadata, to_config_map

from .creating import Creating
from .figures import Figure, Part, table, write_json
from .pods_per_second import CONSTANT, NOBODY, OURS, install_constant, parser
from .servers import ROOT

_OUT: Final = ROOT / "bench" / "out" / "quota_per_second.json"
_PAIRS: Final = 9
_PODS: Final = 1000
_CONNECTIONS: Final = 16
_REPLICAS: Final = 3
_TARGET: Final = 0.7
_ROOM: Final = 10**8
_MANY: Final = 1000
_NAMED: Final = ConfigMapMetadata("gpuquota.ours.gpu", "1")


@dataclass(frozen=True, slots=True)
class Pair:
    """Pods per second."""

    ledger: float
    native: float


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser("quota_per_second", __doc__, pairs=_PAIRS, pods=_PODS, out=_OUT).parse_args(argv)
    with Cluster() as cluster:
        service = _prepare(cluster)
        with Creating(cluster, _CONNECTIONS) as creating:
            pairs = list(_pairs(creating, arguments.pairs, arguments.pods))
        parts = [_rates(pairs, arguments.pods), _decisions(), _many(service)]
    print(table(parts))
    write_json(parts, arguments.json)
    return 0


def _prepare(cluster: Cluster) -> QuotaInstallation:
    for name in (OURS, CONSTANT):
        cluster.create_namespace(name)
    webhook = Installation(cluster, exempt=[CONSTANT, NOBODY])
    for _ in range(_REPLICAS):
        webhook.add_replica()
    webhook.register()
    install_constant(cluster, webhook.registration(), replicas=_REPLICAS)
    service = QuotaInstallation(webhook)
    service.add_replica()
    service.wait_led()
    service.allow(OURS, hard={"cores": _ROOM})
    native = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpu"}}
    native["spec"] = {"hard": {f"requests.{names.VCUDA_CORE}": str(_ROOM)}}
    done = cluster.kubectl("-n", CONSTANT, "create", "-f-", stdin=json.dumps(native))
    assert done.code == 0, done.stderr
    cluster.components["kube-scheduler"].pause()  # what it does with pods is not what is measured
    return service


def _pairs(creating: Creating, count: int, pods: int) -> Iterator[Pair]:
    """Runs the pairs; the first is not counted, and the two sides take turns in starting."""
    order = [OURS, CONSTANT]
    for turn in range(count + 1):
        created = pods if turn else pods // 3
        rates = {name: created / creating.seconds(name, created) for name in order}
        order.reverse()
        if turn:
            print(
                f"pair {turn} of {count}: {rates[OURS]:.0f}, {rates[CONSTANT]:.0f} pods/s", file=sys.stderr, flush=True
            )
            yield Pair(rates[OURS], rates[CONSTANT])


def _rates(pairs: Sequence[Pair], pods: int) -> Part:
    ratio = statistics.median(pair.ledger / pair.native for pair in pairs)
    figures = [
        Figure(
            "pods created per second against one GpuQuota", statistics.median(p.ledger for p in pairs), "/s", digits=0
        ),
        Figure(
            "... against a ResourceQuota, webhooks say yes", statistics.median(p.native for p in pairs), "/s", digits=0
        ),
        Figure("GpuQuota to ResourceQuota, median of the pairs", ratio, "times"),
    ]
    notes = [
        f"target: >= {_TARGET}: {'met' if ratio >= _TARGET else 'MISSED'}",
        f"{len(pairs)} pairs of {pods} pods on {_CONNECTIONS} connections, {_REPLICAS} replicas of either webhook",
    ]
    return Part("Pods against one budget, on a real API server", figures, notes)


def _decisions() -> Part:
    """Measures one more reservation with the encoding of the object, by the number of holders and reservations."""
    figures = [
        Figure(f"{held:,} pods are stored, {coming} are reserved", _decision_us(held, coming), "us", digits=0)
        for held, coming in ((1, 1), (1_000, 1), (10_000, 1), (10_000, 100), (10_000, 900))
    ]
    return Part("A decision, and what it writes", figures)


def _decision_us(held: int, coming: int) -> float:
    cost = {"cores": 30, "memory": 5120, "shares": 1}
    pods = {str(uuid4()): Entry(OURS, f"pod-{number}", cost) for number in range(held)}
    ledger = commit(Ledger({"cores": _ROOM}), 0, StoredPods(pods, sum_of(entry.charge for entry in pods.values())))
    ledger = ledger._replace(
        reservations={str(uuid4()): Entry(OURS, f"new-{number}", cost) for number in range(coming)}
    )
    entry = Entry(OURS, "one-more", cost)
    return (
        min(timeit.repeat(lambda: to_config_map(_NAMED, reserve(ledger, "uid", entry, MAX_RESERVATIONS)), number=20))
        / 20
        * 1e6
    )


def _many(service: QuotaInstallation) -> Part:
    """Measures how long new replicas take to be ready, and to lead, where every namespace has a quota."""
    print(f"{_MANY} namespaces with a quota each", file=sys.stderr)
    with ThreadPoolExecutor(_CONNECTIONS) as threads:
        list(threads.map(lambda number: _namespace(service.cluster, number), range(_MANY)))
    began = time.perf_counter()
    webhook = service.webhook.start_replica()
    known = time.perf_counter() - began
    for replica in [*service.replicas]:
        replica.program.terminate()
        service.replicas.remove(replica)
    began = time.perf_counter()
    leader = service.add_replica()
    service.wait_led()
    led = time.perf_counter() - began
    figures = [
        Figure("a replica of the webhook is ready after", known, "s"),
        Figure("... and holds", _resident_mb(webhook), "MB", None, 1),
        Figure("the quota service leads after", led, "s"),
        Figure("... and holds", _resident_mb(leader), "MB", None, 1),
    ]
    return Part(f"{_MANY:,} namespaces with a quota each", figures)


def _namespace(cluster: Cluster, number: int) -> None:
    name = f"many-{number:04}"
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}}).must()
    item = quota("gpu", {"hard": {"cores": 100}}, name)
    cluster.request("POST", path_of(item).rpartition("/")[0], item).must()


def _resident_mb(replica: Replica) -> float:
    status = Path(f"/proc/{replica.program.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


if __name__ == "__main__":
    sys.exit(main())
