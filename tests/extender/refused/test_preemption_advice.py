"""Who would have to go for a pod that finds no card: named in an event and, where it is wished for, sent away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from msgspec.structs import replace

import extender.refused.preemption_advice
from extender.explain.pending import NodeEvictions, Victim
from extender.quota_limits import BudgetUsage, LimitsOf, QuotaLimits, unlimited
from extender.refused.preemption_advice import PreemptionAdvice, sentence
from extender.state import State
from halfcard.placing.pod_facts import PodFacts
from halfcard.quota.budgets import Budget, read_budget
from halfcard.quota.ledger import Ledger
from kube.api.access import Access
from kube.api.calls import ApiCalls
from serving.log import Log
from tests.builders import pod
from tests.kube.listening import JsonHandler, listening
from tests.kube.object_server import refusal
from tests.waiting import until

from ..populated import node, state_of, stored

HELD: Final = stored(pod("low").asks(core=70, memory=20), on="gpu1", cards=["gpu1-0"], priority=1)
QUOTA: Final = {"metadata": {"name": "gpu", "namespace": "ns", "uid": "u"}, "spec": {"byModel": {"T4": {"cores": 10}}}}


@pytest.fixture(autouse=True)
def _one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender.refused.preemption_advice, "_EVERY_S", 0.0)


@dataclass
class Requests:
    """What the API server was asked; evictions are answered with `evicted`."""

    asked: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    evicted: int = 201
    port: int = 0


@contextmanager
def api_server() -> Iterator[Requests]:
    requests = Requests()

    class Handler(JsonHandler):
        def do_POST(self) -> None:  # noqa: N802  (http.server's name)
            body = self.asked()
            is_eviction = self.path.endswith("/eviction")
            written = f"evict {body['metadata']['name']}" if is_eviction else f"tell {body['involvedObject']['name']}"
            requests.asked.append(written)
            requests.said.append(body.get("message", ""))
            status = requests.evicted if is_eviction else 201
            self.answer(status, body if status == 201 else refusal(status, "a disruption budget")[1])

    with listening(Handler) as requests.port:
        yield requests


class Scene:
    def __init__(self, requests: Requests, limits_of: LimitsOf) -> None:
        self.requests = requests
        self.leads: list[bool] = []
        """When it is asked; True from then on."""
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.state: State = state_of([node("gpu1")], [HELD])
        self.calls = ApiCalls(Access("127.0.0.1", requests.port))
        self.advice = PreemptionAdvice(
            self.state,
            self.calls,
            Log(),
            lambda: not self.leads or self.leads.pop(0),
            lambda: self.now,
            evicts=True,
            limits_of=limits_of,
        )

    def urgent(self, name: str, core: int = 50, **spec: Any) -> None:
        """A pod that finds no card, as filter has requests of it."""
        waiting = stored(pod(name).asks(core=core, memory=20), priority=9)
        assert waiting.spec is not None
        self.state.put_pod(replace(waiting, spec=replace(waiting.spec, **spec)))
        facts = self.state.pod(name)
        assert facts is not None
        self.advice.enqueue(facts, ["gpu1"])

    async def has_asked(self, count: int) -> None:
        await until(lambda: len(self.requests.asked) == count)


@asynccontextmanager
async def advising(evicted: int = 201, limits_of: LimitsOf = unlimited) -> AsyncIterator[Scene]:
    with api_server() as requests:
        requests.evicted = evicted
        scene = Scene(requests, limits_of)
        running = asyncio.create_task(scene.advice.run())
        try:
            yield scene
        finally:
            running.cancel()
            await asyncio.wait((running,))
            scene.calls.close()


async def test_the_victims_are_reported_and_evicted() -> None:
    async with advising() as scene:
        scene.urgent("urgent")
        await scene.has_asked(2)
        assert (
            scene.requests.said[0]
            == "the pod would fit on node gpu1 without ns/low (priority 1); these pods are evicted"
        )
    assert scene.requests.asked == ["tell urgent", "evict low"]


def test_pods_of_other_namespaces_are_counted_and_not_named() -> None:
    foreign = [Victim(f"secret/{name}", 1) for name in "ab"]
    said = sentence(NodeEvictions("gpu1", (Victim("ns/low", 1), *foreign)), "ns", evicts=False)
    assert said.startswith("the pod would fit on node gpu1 without ns/low (priority 1), 2 pods of other namespaces;")
    alone = sentence(NodeEvictions("gpu1", (Victim("ns2/low", 1),)), "ns", evicts=False)
    assert alone.startswith("the pod would fit on node gpu1 without 1 pod of other namespaces;")


async def test_no_further_victim_is_evicted_after_a_disruption_budget_refuses_one() -> None:
    async with advising(evicted=429) as scene:
        other = pod("lower").asks(core=20, memory=10)
        scene.state.put_pod(stored(other, on="gpu1", cards=["gpu1-0"]))
        scene.urgent("urgent", core=90)
        scene.urgent("another", core=90)
        await scene.has_asked(4)
    assert scene.requests.asked == ["tell urgent", "evict lower", "tell another", "evict lower"]


async def test_a_replica_that_does_not_lead_reports_nothing() -> None:
    async with advising() as scene:
        scene.leads = [False, True]
        scene.urgent("urgent")
        scene.urgent("another")
        await scene.has_asked(2)
    assert scene.requests.asked == ["tell another", "evict low"]


async def test_the_event_is_repeated_after_two_minutes() -> None:
    async with advising() as scene:
        for later, also in ((0, "a"), (119, "b"), (2, "c")):
            scene.now += timedelta(seconds=later)
            scene.urgent("urgent")
            scene.urgent(also)
            await until(lambda also=also: f"tell {also}" in scene.requests.asked)  # type: ignore[misc]
    written = [each for each in scene.requests.asked if each.startswith("tell")]
    assert written == ["tell urgent", "tell a", "tell b", "tell urgent", "tell c"]


async def test_no_victims_for_a_pod_with_preemption_policy_never() -> None:
    async with advising() as scene:
        scene.urgent("patient", preemption_policy="Never")
        scene.urgent("urgent", preemption_policy="PreemptLowerPriority")
        await scene.has_asked(2)
    assert scene.requests.asked == ["tell urgent", "evict low"]


async def test_no_victims_on_nodes_that_a_quota_closes() -> None:
    budget = read_budget(QUOTA)
    assert isinstance(budget, Budget)

    def limits_of(facts: PodFacts) -> QuotaLimits:
        hard = budget.hard if facts.name == "urgent" else dict.fromkeys(budget.hard, 1000)
        return QuotaLimits(facts.demand.needs, [BudgetUsage(budget, Ledger(hard, is_ready=True))])

    async with advising(limits_of=limits_of) as scene:
        scene.urgent("urgent")
        scene.urgent("allowed")
        await scene.has_asked(2)
    assert scene.requests.asked == ["tell allowed", "evict low"]
