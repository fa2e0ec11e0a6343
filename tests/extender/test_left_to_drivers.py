"""Nodes whose cards a driver of Dynamic Resource Allocation has: whole cards go there, by kube-scheduler's choice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Final

import msgspec
import pytest

from extender.bind.binder import NotBound
from extender.bind.quota_reservations import QuotaReservations
from extender.explain.explanation import explain
from extender.explain.inspection import inspect
from extender.explain.pending import explain_pending
from extender.left_to_drivers import NOT_FOR_DRIVERS
from extender.packing.policies.binpack import Binpack
from extender.quota_limits import BudgetUsage, QuotaLimits
from extender.scheduler_api import verbs, wire
from extender.scheduler_api.answer_cache import AnswerCache
from extender.state import State
from halfcard import names
from halfcard.dra.driver_nodes import DeviceClass, ResourceSlice
from halfcard.placing.pod_facts import read_facts
from halfcard.quota.budgets import Budget, read_budget
from halfcard.quota.ledger import Ledger, StoredPods, commit
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import LedgerStore
from tests.builders import PodBuilder, device_class, pod, resource_slice
from tests.kube.ledger_server import serving_ledgers

from .bind.test_binder import Replica, manifest
from .pod_server import PodServer, serving_pods
from .populated import node, state_of, stored
from .scheduler import Extender
from .test_state import plain_policy

DRIVER: Final = "gpu.nvidia.com"
WHOLE: Final = pod("asking").asks(gpu=2)


def with_driver(state: State, name: str = "dra1", pool: str = "") -> State:
    """Adds a node without cards of ours, and what a driver publishes of it."""
    state.put_node(
        {"metadata": {"name": name, "labels": {names.POOL_LABELS[0]: pool}}, "status": {"capacity": {"cpu": "8"}}}
    )
    state.driver_nodes.put(msgspec.convert(device_class(), DeviceClass))
    state.driver_nodes.put(msgspec.convert(resource_slice(name), ResourceSlice))
    return state


@pytest.fixture
def extender() -> Extender:
    return Extender(with_driver(state_of([node("n1", 2), node("cpu1", 0)])))


def test_whole_cards_pass_on_a_node_of_a_driver_and_on_nodes_with_cards(extender: Extender) -> None:
    answer = extender.filter(WHOLE, ["dra1", "n1", "cpu1"])
    assert sorted(answer["NodeNames"]) == ["dra1", "n1"]
    assert answer["FailedAndUnresolvableNodes"] == {"cpu1": "no GPU known to Halfcard"}


@pytest.mark.parametrize(
    "asking",
    [
        pod("asking").asks(core=30, memory=8),
        pod("asking").asks(core=100),
        pod("asking").asks(gpu=1, gpumem=3000),
        pod("asking").asks(gpu=1).asks(sgpu=1),
        pod("asking").asks(gpu=1).annotated({names.ASK_MODEL: "T4"}),
    ],
    ids=["a share", "whole cards of gpu-manager", "HAMi", "a half beside", "a choice of cards"],
)
def test_every_other_claim_is_refused_there_with_the_reason(extender: Extender, asking: PodBuilder) -> None:
    refused = extender.filter(asking, ["dra1", "cpu1"])["FailedAndUnresolvableNodes"]
    assert (refused["dra1"], refused["cpu1"]) == (NOT_FOR_DRIVERS, "no GPU known to Halfcard")


def test_a_node_with_cards_of_ours_is_not_the_drivers(extender: Extender) -> None:
    extender.state.driver_nodes.put(msgspec.convert(resource_slice("n1"), ResourceSlice))
    answer = extender.filter(pod("asking").asks(gpu=3), ["n1"])
    assert answer["FailedAndUnresolvableNodes"] == {"n1": "fewer than 3 cards are wholly free"}


def test_a_node_whose_slices_are_gone_takes_no_pod(extender: Extender) -> None:
    extender.state.driver_nodes.replace(ResourceSlice, [])
    assert not extender.filter(WHOLE, ["dra1"])["NodeNames"]


def test_a_node_of_a_driver_ranks_behind_nodes_with_cards(extender: Extender) -> None:
    call = {"Pod": msgspec.to_builtins(stored(WHOLE)), "Nodes": None, "NodeNames": ["dra1", "n1"]}
    scores = {each["Host"]: each["Score"] for each in extender.post(names.PRIORITIZE_PATH, call)}
    assert scores["n1"] > scores["dra1"]


def test_preemption_there_is_as_the_scheduler_proposes(extender: Extender) -> None:
    proposed = {"dra1": wire.MetaVictims([wire.MetaPod("v")], 1), "cpu1": wire.MetaVictims([wire.MetaPod("v")], 0)}
    answer = msgspec.json.decode(verbs.preempt(extender.state, stored(WHOLE), proposed))
    assert answer == {"NodeNameToMetaVictims": {"dra1": {"Pods": [{"UID": "v"}], "NumPDBViolations": 1}}}


# --- bind ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[PodServer]:
    with serving_pods() as server:
        yield server


@pytest.fixture
async def replica(server: PodServer) -> AsyncIterator[Replica]:
    replica = Replica(server)
    with_driver(replica.state)
    yield replica
    replica.close()


async def test_a_bind_there_writes_the_node_and_no_record(server: PodServer, replica: Replica) -> None:
    server.put(manifest("p", pod().asks(gpu=1)))
    replica.see_all()
    await replica.bind("p", to="dra1")
    assert server.node("p") == "dra1" and names.PLACEMENT not in server.annotations("p")
    assert replica.state.inconsistencies() == ()


async def test_a_share_is_not_bound_there(server: PodServer, replica: Replica) -> None:
    server.put(manifest("p"))
    replica.see_all()
    with pytest.raises(NotBound, match="no GPU known to Halfcard"):
        await replica.bind("p", to="dra1")


async def test_a_bind_there_reserves_in_a_quota_of_the_pool_and_is_refused_beyond_it(server: PodServer) -> None:
    spec = {"byPool": {"training": {"cards": 1}}}
    quota = read_budget({"metadata": {"name": "gpu", "namespace": "team", "uid": "q"}, "spec": spec})
    assert isinstance(quota, Budget)
    with serving_ledgers() as ledgers:
        ledgers.put(quota.ledger, commit(Ledger(quota.hard, quota_uid="q"), 0, StoredPods({}, {})))
        calls = ApiCalls(Access("127.0.0.1", ledgers.port))
        store = LedgerStore(calls, names.NAMESPACE)
        budgets = QuotaReservations(lambda _: (quota,), store, asyncio.get_running_loop().time)
        budgets.on_ledger_change(quota.ledger, ledgers.seen(quota.ledger))
        replica = Replica(server, budgets=budgets)
        with_driver(replica.state, pool="training")
        server.put(manifest("p", pod().asks(gpu=1)))
        server.put(manifest("q", pod().asks(gpu=1)))
        replica.see_all()
        await replica.bind("p", to="dra1")
        assert [entry.pod for entry in ledgers.ledger(quota.ledger).reservations.values()] == ["p"]
        with pytest.raises(NotBound, match="exceeded quota: team/gpu"):
            await replica.bind("q", to="dra1")
        replica.close()
        calls.close()


# --- what people see -------------------------------------------------------------------------------------------------


def explained(asking: PodBuilder) -> str:
    state = with_driver(state_of([]))
    found = explain(state, read_facts(stored(asking), state.dialects), Binpack())
    assert found.prospects is not None
    return found.prospects.nodes[0].reason


def test_explain_says_who_decides_about_whole_cards_and_why_shares_go_elsewhere() -> None:
    assert explained(WHOLE) == f"kube-scheduler allocates its cards by Dynamic Resource Allocation (driver {DRIVER})"
    assert explained(pod("asking").asks(core=30, memory=8)) == NOT_FOR_DRIVERS


def test_a_quota_by_model_closes_nodes_of_a_driver_to_filter_and_explain() -> None:
    quota = read_budget(
        {"metadata": {"name": "gpu", "namespace": "ns", "uid": "q"}, "spec": {"byModel": {"H100": {"cards": 1}}}}
    )
    assert isinstance(quota, Budget)
    state = with_driver(state_of([node("n1", 2)]))
    facts = read_facts(stored(WHOLE), state.dialects)
    limits = QuotaLimits(facts.demand.needs, [BudgetUsage(quota, Ledger(quota.hard, is_ready=True))])
    answers = AnswerCache(state, lambda _name: plain_policy())
    call = wire.NodesCall(stored(WHOLE), ["dra1", "n1"], None)
    answer = msgspec.json.decode(verbs.filter_nodes(state, answers, call, limits_of=lambda _: limits))
    found = explain_pending(state, facts, Binpack(), limits).nodes
    assert answer["NodeNames"] == ["n1"]
    assert answer["FailedAndUnresolvableNodes"] == {each.name: each.reason for each in found if not each.fits}
    assert "has limits by card model" in answer["FailedAndUnresolvableNodes"]["dra1"]


def test_inspect_names_the_driver_of_a_node_and_its_pods() -> None:
    state = with_driver(state_of([node("n1")], [stored(pod("a").asks(gpu=1), on="dra1")]))
    found = inspect(state, state.nodes()["dra1"], {})
    assert (found.driver, found.without_card, found.doubts) == (DRIVER, ("ns/a",), ())
    assert inspect(state, state.nodes()["n1"], {}).driver == ""
