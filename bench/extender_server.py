"""`python -m bench.extender_server NODES PODS PODS_LATER`: the extender with a synthetic cluster instead of watches.

Beside the verbs it answers the floor of each: the same reading of the body on the same connection, the same library,
and every node is as good as every other. What else happens to its cluster is asked of it at `/bench/…`.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import msgspec
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from extender.app import extender_app
from extender.bind.binder import Binder, BindRules
from extender.bind.forwarding import Forwarding
from extender.bind.quota_reservations import QuotaReservations
from extender.malloc import keep_freed_memory
from extender.metrics import ExtenderMetrics
from extender.packing.policy_cache import PolicyCache
from extender.packing.workload_stats import WorkloadStats
from extender.scheduler_api.answer_cache import AnswerCache
from extender.scheduler_api.contact_log import ContactLog
from extender.scheduler_api.endpoint import Verb
from extender.scheduler_api.handlers import VerbHandlers
from extender.state import State
from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from halfcard.pod.stored_pod import StoredPod
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import LedgerStore
from serving.lifecycle import Lifecycle, run
from serving.listener import Listener, StopTimings, serve
from serving.log import Log, utc_now
from serving.request_body import JSON, body_in_time, respond

from . import extender_cluster as cluster
from .extender_cluster import Size

FLOOR_FILTER: Final = "/bench/floor/filter"
FLOOR_PRIORITIZE: Final = "/bench/floor/prioritize"
FORGET: Final = "/bench/forget"
CHANGE: Final = "/bench/change"
GROW: Final = "/bench/grow"
_MOST_BYTES: Final = 256 * 2**20
_FIRST: Final = 20_000_000
_SMALL: Final = {names.VCUDA_CORE: 1, names.VCUDA_MEMORY: 1}


def _no_budgets(calls: ApiCalls) -> QuotaReservations:
    return QuotaReservations(lambda _namespace: (), LedgerStore(calls, names.NAMESPACE), time.monotonic)


class _List(msgspec.Struct):
    items: list[msgspec.Raw]


class _CallBody(msgspec.Struct, rename="pascal"):
    pod: StoredPod
    nodes: _List | None
    node_names: list[str] | None


class _Filtered(msgspec.Struct, rename="pascal"):
    nodes: _List | None
    node_names: list[str] | None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class _Score(msgspec.Struct, rename="pascal", gc=False):
    host: str
    score: int


_READ: Final = msgspec.json.Decoder(_CallBody)
_write: Final = msgspec.json.Encoder().encode


async def _everything_fits(body: bytes, _scope: Scope) -> bytes:
    asked = _READ.decode(body)
    return _write(_Filtered(asked.nodes, asked.node_names))


async def _all_alike(body: bytes, _scope: Scope) -> bytes:
    return _write([_Score(name, 0) for name in _READ.decode(body).node_names or ()])


class Extender:
    """An ASGI application."""

    def __init__(self, size: Size, log: Log) -> None:
        self._log = log
        self._metrics = ExtenderMetrics(CollectorRegistry())
        self._state = State(Dialects(), CapacityRules())
        self._state.replace_nodes([cluster.node(number) for number in range(size.nodes)])
        self._state.replace_pods([*cluster.placed(size), *cluster.waiting()])
        self._state.node_classes()
        self._later = cluster.later(size)
        self._coming_and_going = _coming_and_going(size)
        self._policies = PolicyCache("default", WorkloadStats().mix, self._state)
        self._floors = {
            FLOOR_FILTER: self._verb("floor of filter", _everything_fits),
            FLOOR_PRIORITIZE: self._verb("floor of prioritize", _all_alike),
        }
        self._controls: dict[str, Callable[[int], object]] = {
            FORGET: self._forget,
            CHANGE: self._change,
            GROW: self._grow,
        }
        self._scheduling = self._make()
        self._app = extender_app(self._scheduling, table={}, aliyun_unit_mib=1024, metrics=self._metrics, log=log)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if (control := self._controls.get(path)) is not None:
            count = int(await body_in_time(scope, receive, _MOST_BYTES))
            await respond(send, 200, JSON, json.dumps(control(count)).encode())
        else:
            await self._floors.get(path, self._app)(scope, receive, send)

    def _verb(self, name: str, decide: Callable[[bytes, Scope], Awaitable[bytes]]) -> Verb:
        return Verb(name, decide, lambda why: why.encode(), self._metrics, self._log)

    def _make(self) -> VerbHandlers:
        calls = ApiCalls(Access("127.0.0.1", 1))
        rules = BindRules(self._policies.policy, Dialects(), time.time_ns, lambda: False, lambda: "")
        return VerbHandlers(
            self._state,
            AnswerCache(self._state, self._policies.policy),
            Binder(self._state, calls, rules, _no_budgets(calls)),
            Forwarding(lambda: None, "", _no_tls),
            lambda: True,
            lambda: False,
            is_mutual=False,
            on_unschedulable=lambda _facts, _nodes: None,
            contact=ContactLog(utc_now, frozenset, lambda _why: None),
        )

    # --- what happens to the cluster --------------------------------------------------------------------------------

    def _forget(self, _count: int) -> None:
        """Reuses the application: garbage of an old one would slow down the next call."""
        object.__setattr__(self._scheduling, "answers", AnswerCache(self._state, self._policies.policy))

    def _change(self, count: int) -> float:
        """Microseconds for each of so many pods, when one is added to or removed from each node in turn."""
        events = [next(self._coming_and_going) for _ in range(count)]
        began = time.perf_counter()
        for kind, pod in events:
            if kind == "DELETED":
                self._state.end_pod(pod.meta.uid)
            else:
                self._state.put_pod(pod)
        return (time.perf_counter() - began) / max(count, 1) * 1e6

    def _grow(self, _count: int) -> int:
        """Adds the later pods; returns how many pods there are then."""
        for pod in self._later:
            self._state.put_pod(pod)
        gc.freeze()
        return sum(1 for _ in self._state.pods())


def _no_tls() -> Any:
    raise AssertionError("no call is forwarded")


def _coming_and_going(size: Size) -> Iterator[tuple[str, StoredPod]]:
    """A pod comes to every node, one after the other; then they go."""
    number = _FIRST
    while True:
        for kind in ("ADDED", "DELETED"):
            for on in range(size.nodes):
                yield kind, cluster.bound(number + on, on, _SMALL, [cluster.CARDS - 1])
        number += size.nodes


def main(size: Size) -> int:
    log = Log()
    keep_freed_memory()
    return run(lambda lifecycle: _serve(size, lifecycle, log), log=log)


async def _serve(size: Size, lifecycle: Lifecycle, log: Log) -> None:
    application = Extender(size, log)
    gc.freeze()
    listener = Listener("extender", "127.0.0.1", 0, application)
    await serve(
        [listener],
        lifecycle=lifecycle,
        log=log,
        stopping=StopTimings(grace_s=0),
        on_ready=lambda found: print(json.dumps({"extender": f"http://{found['extender']}"}), flush=True),
    )


if __name__ == "__main__":
    NODES, PODS, LATER = map(int, sys.argv[1:])
    sys.exit(main(Size(nodes=NODES, pods=PODS, pods_later=LATER)))
