"""Finds the budgets that count a pod, with its charge in each and the writer of each ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from halfcard.claims import Need
from halfcard.cluster_view import ClusterView
from halfcard.placing.demand import needs_of
from halfcard.pod.card_preferences import read_wanted
from halfcard.pod.requests import read_pod
from halfcard.pod.spec import Pod
from halfcard.quota.budgets import Budget
from halfcard.quota.charge import charge
from halfcard.quota.ledger import Amounts, Entry
from kube.ledger.ledger_store import LedgerStore, WatchedLedger
from kube.ledger.ledger_writer import LedgerWriter
from kube.ledger.ledger_writers import LedgerWriters
from kube.quota.budget_source import BudgetSource

from ..policy import AdmissionPolicy
from .reachable_nodes import ReachableNodes


class ReservationRequest(NamedTuple):
    """The charge of a pod in one budget.

    Attributes:
        somewhere: additional charges, one for each kind of node that the pod may run on; empty where none differ.
    """

    budget: Budget
    desk: LedgerWriter
    entry: Entry
    somewhere: Sequence[Amounts]


class BudgetLedgers:
    """Made on the event loop."""

    def __init__(
        self, source: BudgetSource, ledgers: LedgerStore, policy: AdmissionPolicy, cluster: Callable[[], ClusterView]
    ) -> None:
        self._source = source
        self._places = ReachableNodes(cluster)
        self._policy = policy
        self._desks = LedgerWriters(ledgers, time.monotonic)

    @property
    def ready(self) -> bool:
        """Have all budgets been seen?"""
        return self._source.ready

    def saw(self, name: str, seen: WatchedLedger | None) -> None:
        """A ledger that has changed."""
        self._desks.saw(name, seen)

    def concern(self, namespace: str) -> bool:
        return bool(self._source.of(namespace))

    def may_gate(self, namespace: str) -> bool:
        """Whether a pod there may have to wait."""
        return self.concern(namespace) and any(budget.gates for budget in self._source.of(namespace))

    def wanted(self, pod: Pod, namespace: str, title: str = "") -> list[ReservationRequest]:
        """Returns the requests in the order in which ledgers are written; `title` is the pod's name in messages."""
        needs = needs_of(read_pod(pod, self._policy.dialects))[1]
        asked = charge(needs)
        if not asked:
            return []
        return [
            ReservationRequest(
                budget,
                self._desks.of(budget),
                Entry(namespace, title, budget.cost(asked, pod.labels)),
                self._costs_at(budget, pod, needs),
            )
            for budget in self._source.of(namespace)
        ]

    def reach(self, budget: Budget) -> Amounts:
        """The most that it can ever allow."""
        return self._source.reach(budget)

    def _costs_at(self, budget: Budget, pod: Pod, needs: tuple[Need, ...]) -> list[Amounts]:
        if not budget.asks_where:
            return []
        return [budget.cost_at(place) for place in self._places.of(needs, read_wanted(pod.annotations))]
