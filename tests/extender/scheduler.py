"""An extender over a small cluster, and what kube-scheduler sends it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from extender.app import extender_app
from extender.bind.binder import Binder, BindRules
from extender.bind.forwarding import Forwarding
from extender.bind.quota_reservations import QuotaReservations
from extender.metrics import ExtenderMetrics
from extender.packing.fleet import fleet_of
from extender.packing.placement import POLICIES
from extender.packing.workload_mix import WorkloadMix
from extender.scheduler_api.answer_cache import AnswerCache
from extender.scheduler_api.contact_log import ContactLog
from extender.scheduler_api.handlers import VerbHandlers
from extender.state import State
from halfcard import names
from halfcard.dialects import Dialects
from kube.api.access import Access
from kube.api.calls import ApiCalls
from serving.log import Log, utc_now
from tests.admission.asgi import JSON, Answer, ask
from tests.builders import PodBuilder, pod

from .populated import no_budgets, node, state_of, stored

Json = dict[str, Any]
SHARE = pod("asking").asks(core="30", memory="8")


def _no_tls() -> Any:
    raise AssertionError("no call is forwarded")


def no_contact() -> ContactLog:
    return ContactLog(utc_now, frozenset, lambda _why: None)


@dataclass
class Extender:
    """Its binds get no answer, and no other replica leads."""

    state: State
    is_ready: bool = True
    is_mutual: bool = False
    budgets: QuotaReservations = field(default_factory=no_budgets)
    said: io.StringIO = field(default_factory=io.StringIO)
    contact: ContactLog = field(default_factory=no_contact)
    scheduling: VerbHandlers = field(init=False)
    app: ASGIApp = field(init=False)

    def __post_init__(self) -> None:
        policy = POLICIES["binpack"](WorkloadMix(()), fleet_of(self.state.nodes().values()))
        rules = BindRules(lambda _: policy, Dialects(), lambda: 1, lambda: False, lambda: "term")
        self.scheduling = VerbHandlers(
            self.state,
            AnswerCache(self.state, lambda _: policy),
            Binder(self.state, ApiCalls(Access("127.0.0.1", 1)), rules, self.budgets),
            Forwarding(lambda: None, "", _no_tls),
            ready=lambda: self.is_ready,
            may_decide=lambda: False,
            is_mutual=self.is_mutual,
            on_unschedulable=lambda _facts, _nodes: None,
            contact=self.contact,
        )
        metrics, log = ExtenderMetrics(CollectorRegistry()), Log(stream=self.said)
        self.app = extender_app(self.scheduling, table={}, aliyun_unit_mib=1024, metrics=metrics, log=log)

    def post(self, path: str, body: bytes | Json) -> Any:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = ask(self.app, path, sent)
        assert answer.status == 200
        return json.loads(answer.body)

    def ask(self, path: str, body: bytes, **words: Any) -> Answer:
        return ask(self.app, path, body, **{"headers": (JSON,), **words})

    def filter(self, asking: PodBuilder = SHARE, nodes: Sequence[str] = ("n1", "n2"), **metadata: Any) -> Any:
        return self.post(names.FILTER_PATH, by_name(asking, nodes, **metadata))


def small_cluster() -> State:
    """n1 has 30 and 30 per cent left on two cards, n2 a free card and one with 50 % in use; n3 has no card."""
    pods = [
        stored(pod("a").asks(core="70", memory="16"), on="n1", cards=["n1-0"]),
        stored(pod("b").asks(core="70", memory="16"), on="n1", cards=["n1-1"]),
        stored(pod("c").asks(core="50", memory="16"), on="n2", cards=["n2-0"]),
    ]
    return state_of([node("n1", 2), node("n2", 2), node("n3", 0)], pods)


def by_name(asking: PodBuilder, nodes: Sequence[str], **metadata: Any) -> Json:
    return {"Pod": sent(asking, **metadata), "Nodes": None, "NodeNames": list(nodes)}


def in_full(asking: PodBuilder, nodes: Sequence[Mapping[str, Any]]) -> Json:
    return {"Pod": sent(asking), "Nodes": {"metadata": {}, "items": list(nodes)}, "NodeNames": None}


def sent(asking: PodBuilder, **metadata: Any) -> Json:
    found: Json = json.loads(msgspec.json.encode(stored(asking)))
    return found | {"metadata": {**found["metadata"], **metadata}}


def binding(name: str = "asking", to: str = "n1") -> Json:
    return {"PodName": name, "PodNamespace": "ns", "PodUID": name, "Node": to}
