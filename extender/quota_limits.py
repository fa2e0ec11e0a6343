"""Decides which nodes are closed to a pod by GpuQuotas with limits by model or pool. Pure.

The cards of a pod are unknown before it is bound: a model is closed where the whole pod would exceed its limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

from halfcard.claims import Need
from halfcard.placing.demand import Demand
from halfcard.placing.layouts import fits
from halfcard.placing.pod_facts import PodFacts
from halfcard.placing.room import Room
from halfcard.quota.budget_messages import exceeded, uncounted_models
from halfcard.quota.budgets import Budget
from halfcard.quota.ledger import Ledger, shortages, sum_of
from halfcard.quota.pod_location import NodeKind, PodLocation, widest_location


class BudgetUsage(NamedTuple):
    budget: Budget
    ledger: Ledger


class QuotaLimits:
    """The limits for one pod at one moment.

    Attributes:
        closed: returns for a kind of node the models that are closed to the pod, with the reason.
    """

    def __init__(self, needs: tuple[Need, ...], counted: Sequence[BudgetUsage]) -> None:
        self._needs = needs
        self._counted = counted
        self.closed = cache(self._judge)

    def why_not(self, kind: NodeKind, demand: Demand, room: Callable[[], Room | None]) -> str:
        """Returns why a node of this kind is closed; empty where it is not. All nodes of a kind have the same text."""
        closed = self.closed(kind)
        if not closed or (len(closed) < len(kind.models) and _fits(room(), narrowed(demand, closed))):
            return ""
        return next(iter(closed.values()))

    def why_not_of_driver(self, kind: NodeKind) -> str:
        """Returns why a node of a driver is closed: also by any limit of a model, since its cards cannot be counted."""
        by_model = next((budget for budget, _ in self._counted if budget.models), None)
        if by_model is not None:
            return uncounted_models(by_model.title)
        return next(iter(self.closed(kind).values()), "")

    def without(self, gone: Sequence[PodLocation]) -> QuotaLimits:
        """Returns the limits after pods of the same namespace have left these locations."""
        if not gone or not self._counted:
            return self
        return QuotaLimits(self._needs, [_less(counted, gone) for counted in self._counted])

    def _judge(self, kind: NodeKind) -> Mapping[str, str]:
        whole = widest_location(kind, self._needs)
        alone = {model: whole._replace(by_model={model: charge}) for model, charge in whole.by_model.items()}
        return {model: why for model, place in alone.items() if (why := self._refusal(place))}

    def _refusal(self, place: PodLocation) -> str:
        found = ((budget, shortages(ledger, budget.counted_at(place))) for budget, ledger in self._counted)
        return " | ".join(exceeded(budget.title, short) for budget, short in found if short)


def _less(counted: BudgetUsage, gone: Sequence[PodLocation]) -> BudgetUsage:
    left = sum_of([counted.ledger.committed])
    left.subtract(sum_of([counted.budget.counted_at(place) for place in gone]))
    return counted._replace(ledger=counted.ledger._replace(committed=left))


def narrowed(demand: Demand, closed: Iterable[str]) -> Demand:
    """Restricts the demand to cards of other models than the closed ones."""
    return demand._replace(wanted=replace(demand.wanted, closed=tuple(closed)))


def _fits(room: Room | None, demand: Demand) -> bool:
    return room is not None and fits(room, demand)


UNLIMITED: Final = QuotaLimits((), ())

LimitsOf = Callable[[PodFacts], QuotaLimits]


def unlimited(_facts: PodFacts) -> QuotaLimits:
    return UNLIMITED
