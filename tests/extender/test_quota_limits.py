"""Budgets of models and pools as one pod meets them."""

from __future__ import annotations

from typing import Any, Final

from extender.quota_limits import UNLIMITED, BudgetUsage, QuotaLimits, narrowed
from halfcard.cards import Card, Node
from halfcard.dialects import Dialects
from halfcard.placing.demand import Demand, needs_of
from halfcard.placing.room import Room, empty_room
from halfcard.pod.requests import read_pod
from halfcard.quota.budgets import Budget, read_budget
from halfcard.quota.ledger import Ledger
from halfcard.quota.pod_location import NodeKind, kind_of
from tests.builders import PodBuilder, pod

CARD: Final = pod().asks(core=100)
T4, A100 = Card(0, "Tesla T4", 16384), Card(1, "NVIDIA A100-SXM4-80GB", 81920)
MIXED: Final = Node("mixed", (T4, A100))
FEW: Final = {"byModel": {"A100": {"cards": 2}}}


def demand(built: PodBuilder = CARD) -> Demand:
    return Demand(needs_of(read_pod(built.read, Dialects()))[1])


def limits(spec: dict[str, Any], used: dict[str, int], built: PodBuilder = CARD) -> QuotaLimits:
    budget = read_budget({"metadata": {"name": "gpu", "namespace": "team", "uid": "u"}, "spec": spec})
    assert isinstance(budget, Budget)
    ledger = Ledger(budget.hard, is_ready=True, committed=used)
    return QuotaLimits(demand(built).needs, [BudgetUsage(budget, ledger)])


def why_not(found: QuotaLimits, node: Node, room: Room | None = None, built: PodBuilder = CARD) -> str:
    return found.why_not(kind_of(node), demand(built), lambda: room or empty_room(node))


FULL: Final = {"cards of model A100": 2}


def test_a_node_is_refused_with_amounts_where_the_limit_of_its_model_is_reached() -> None:
    found = limits(FEW, FULL)
    assert why_not(found, Node("a", (A100,))) == (
        "exceeded quota: team/gpu, requested: cards of model A100=1, used: cards of model A100=2, "
        "limited: cards of model A100=2 (1 more needed: 1 whole card asked, 0 whole cards free)"
    )
    assert why_not(found, Node("t", (T4,))) == ""
    assert why_not(limits(FEW, {"cards of model A100": 1}), Node("a", (A100,))) == ""


def test_a_limit_by_model_closes_nodes_of_drivers_whose_cards_nobody_counts() -> None:
    driver = kind_of(Node("dra1", pool="lab"))
    assert limits(FEW, {}).why_not_of_driver(driver) == (
        "quota team/gpu has limits by card model, and the models of this node's cards are known to its driver alone"
    )
    by_pool = {"byPool": {"lab": {"cards": 1}}}
    assert limits(by_pool, {}).why_not_of_driver(driver) == ""
    assert "cards of pool lab=1" in limits(by_pool, {"cards of pool lab": 1}).why_not_of_driver(driver)


def test_a_pool_at_its_limit_is_refused_whatever_the_model() -> None:
    found = limits({"byPool": {"lab": {"cores": 150}}}, {"cores of pool lab": 100})
    assert "cores of pool lab=100" in why_not(found, Node("t", (T4,), pool="lab"))
    assert why_not(found, Node("t", (T4,), pool="other")) == ""


def test_a_mixed_node_is_accepted_where_the_pod_fits_on_cards_of_another_model() -> None:
    found = limits(FEW, FULL)
    assert why_not(found, MIXED) == ""
    taken = empty_room(MIXED)
    taken = taken.after((taken.left[0]._replace(mode=taken.left[0].mode.EXCLUSIVE, cores=0), taken.left[1]))
    assert "cards of model A100" in why_not(found, MIXED, taken)
    assert "cards of model A100" in why_not(limits(FEW, FULL, pod().asks(core=200)), MIXED, built=pod().asks(core=200))


def test_a_pod_is_placed_on_cards_of_models_that_are_not_closed() -> None:
    closed = limits(FEW, FULL).closed(kind_of(MIXED))
    assert [*closed] == [A100.model]
    asked = narrowed(demand(), closed)
    assert [asked.wanted.allows(card) for card in (T4, A100)] == [True, False]
    assert asked.wanted.narrows


def test_no_node_is_closed_without_budgets() -> None:
    assert UNLIMITED.why_not(NodeKind("", ("T4",)), demand(), lambda: None) == ""
