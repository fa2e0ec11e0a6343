"""Which budgets a pod would be charged in, and for what; each with the desk of its ledger."""

from __future__ import annotations

import time
from typing import NamedTuple

from halfcard.asks import read_pod
from halfcard.budgets import Budget
from halfcard.charges import charge
from halfcard.ledger import MOST_OPEN, MOST_OPEN_OF_ONE, Entry
from halfcard.placing.demand import needs_of
from halfcard.pods import Metadata, Pod
from kube.budget_source import BudgetSource
from kube.ledgers import Ledgers, Seen

from .ledger_desk import LedgerDesk
from .policy import Policy

_NAMELESS = Metadata()


class Wanted(NamedTuple):
    """What one budget counts of the pod."""

    budget: Budget
    desk: LedgerDesk
    entry: Entry


class BudgetDesks:
    """Made on the event loop."""

    def __init__(self, source: BudgetSource, ledgers: Ledgers, policy: Policy) -> None:
        self._source = source
        self._ledgers = ledgers
        self._policy = policy
        self._desks: dict[str, LedgerDesk] = {}

    @property
    def ready(self) -> bool:
        """Have all budgets been seen?"""
        return self._source.ready

    def saw(self, name: str, seen: Seen | None) -> None:
        """A ledger that has changed."""
        desk = self._desks.get(name)
        if desk is not None:
            desk.saw(seen)

    def concern(self, namespace: str) -> bool:
        return namespace not in self._policy.exempt_namespaces and bool(self._source.of(namespace))

    def wanted(self, pod: Pod, namespace: str) -> list[Wanted]:
        """In the order in which the ledgers are written."""
        asked = charge(needs_of(read_pod(pod, self._policy.dialects))[1])
        if not asked:
            return []
        title = (pod.metadata or _NAMELESS).title
        return [
            Wanted(budget, self._desk(budget), Entry(namespace, title, budget.cost(asked, pod.labels)))
            for budget in self._source.of(namespace)
        ]

    def _desk(self, budget: Budget) -> LedgerDesk:
        desk = self._desks.get(budget.ledger)
        if desk is None:
            most_of_one = MOST_OPEN if budget.namespace else MOST_OPEN_OF_ONE
            desk = LedgerDesk(self._ledgers, budget.ledger, time.monotonic, most_of_one)
            self._desks[budget.ledger] = desk
        return desk
