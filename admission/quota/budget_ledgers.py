"""Finds the budgets that count a pod, with its charge in each and the writer of each ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from halfcard.claims import Need
from halfcard.cluster_view import ClusterView
from halfcard.placing.demand import Demand, needs_of
from halfcard.pod.card_preferences import read_preferences
from halfcard.pod.requests import read_pod
from halfcard.pod.spec import Pod
from halfcard.quota.amount_key import AmountKey
from halfcard.quota.budgets import Budget
from halfcard.quota.charge import charge, uncounted
from halfcard.quota.ledger import Amounts, Entry
from kube.ledger.ledger_store import LedgerStore, WatchedLedger
from kube.ledger.ledger_writer import LedgerWriter
from kube.ledger.ledger_writers import LedgerWriters
from kube.quota.budget_source import BudgetSource

from ..policy import AdmissionPolicy
from .reachable_nodes import ReachableNodes
from .uncounted_devices import uncounted_devices


class ReservationRequest(NamedTuple):
    """The charge of a pod in one budget."""

    budget: Budget
    writer: LedgerWriter
    entry: Entry
    by_node: Sequence[Amounts]
    """Additional charges, one for each kind of node that the pod may run on; empty where all nodes count alike."""
    unknown: tuple[str, ...] = ()
    """The amounts that the budget limits and that nothing says about the pod before it has a card."""


class BudgetLedgers:
    """Finds budgets and their ledgers; to be created on the event loop."""

    def __init__(
        self, source: BudgetSource, ledgers: LedgerStore, policy: AdmissionPolicy, cluster: Callable[[], ClusterView]
    ) -> None:
        self._source = source
        self._nodes = ReachableNodes(cluster)
        self._policy = policy
        self._writers = LedgerWriters(ledgers, time.monotonic)

    @property
    def ready(self) -> bool:
        """Returns whether all budgets have been listed."""
        return self._source.ready

    def update(self, name: str, ledger: WatchedLedger | None) -> None:
        """Passes a changed ledger to its writer; None where it was deleted."""
        self._writers.ledger_changed(name, ledger)

    def has_budgets(self, namespace: str) -> bool:
        return bool(self._source.of(namespace))

    def may_gate(self, namespace: str) -> bool:
        """Returns whether a pod in the namespace may have to wait."""
        return any(budget.gates for budget in self._source.of(namespace))

    def requests_for(self, pod: Pod, namespace: str, title: str = "") -> list[ReservationRequest]:
        """Returns the requests in the order in which ledgers are written; `title` is the pod's name in messages."""
        needs = needs_of(read_pod(pod, self._policy.dialects))[1]
        asked = charge(needs)
        if not asked:
            return []
        return [
            ReservationRequest(
                budget,
                self._writers.of(budget),
                Entry(namespace, title, budget.counted(asked, pod.labels)),
                self._by_node(budget, pod, needs),
                self._unknown(budget, needs),
            )
            for budget in self._source.of(namespace)
        ]

    def uncounted_devices(self, pod: Pod, namespace: str) -> tuple[Budget, str] | None:
        """Returns the first budget with limits, and where the pod asks for GPUs that no budget counts."""
        field = uncounted_devices(pod, self._policy)
        budget = next((each for each in self._source.of(namespace) if self.maximum(each)), None) if field else None
        return None if budget is None else (budget, field)

    def maximum(self, budget: Budget) -> Amounts:
        """Returns the most that the budget can ever allow, with all that it may borrow."""
        return self._source.reach(budget)

    def _unknown(self, budget: Budget, needs: tuple[Need, ...]) -> tuple[str, ...]:
        limited = {AmountKey.parse(key).what for key in self.maximum(budget)}
        return tuple(sorted(uncounted(needs) & limited))

    def _by_node(self, budget: Budget, pod: Pod, needs: tuple[Need, ...]) -> list[Amounts]:
        if not budget.depends_on_location:
            return []
        return [budget.counted_at(place) for place in self._nodes.of(Demand(needs, read_preferences(pod.annotations)))]
