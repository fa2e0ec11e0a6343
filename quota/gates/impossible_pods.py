"""Finds waiting pods that can never be admitted, or never be scheduled: they are charged nothing and block no pod.

An amount of the cluster or of a quota may grow, so they wait, and are decided again after each change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from halfcard.placing.demand import Demand
from halfcard.quota.budget_messages import exceeded
from halfcard.quota.budgets import Budget
from halfcard.quota.ledger import Amounts, Ledger, shortages

from ..charged_pods import ChargedPod

NO_NODE: Final = (
    "no node could take the pod, even without any other pod; until one is added, it stays outside of the queue"
)


class ImpossiblePods(NamedTuple):
    """
    Attributes:
        reach: the most that a budget can ever allow, with all that it may borrow.
        could_take: whether some node could take a demand.
    """

    reach: Callable[[Budget], Amounts]
    could_take: Callable[[Demand], bool]

    def why(self, pod: ChargedPod, budgets: Sequence[Budget]) -> str:
        """Returns why the pod cannot be admitted now, whatever ends; empty for nearly all pods."""
        for budget in budgets:
            if short := shortages(Ledger(self.reach(budget)), budget.counted(pod.charge, pod.labels)):
                return f"more than the whole quota, so it stays outside of the queue: {exceeded(budget.title, short)}"
        return "" if self.could_take(Demand(pod.needs, pod.wanted)) else NO_NODE
