"""Reserves in the ledgers of budgets with limits by model or pool, before a pod is bound.

Invariant: a pod is bound only with a reservation in every ledger that counts its location, made for this attempt to
bind it; a failed attempt keeps none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from halfcard.placing.pod_facts import PodFacts
from halfcard.quota.budget_messages import exceeded
from halfcard.quota.budgets import Budget
from halfcard.quota.ledger import Busy, Entry, Exceeded, Uncounted, bind_reservation, is_bind_reservation, pod_uid
from halfcard.quota.pod_location import PodLocation
from kube.ledger.joint_reservation import LedgerCharge, NotReservedError, Reservation, reserve_in_all
from kube.ledger.ledger_store import LedgerStore, WatchedLedger
from kube.ledger.ledger_writer import Clock
from kube.ledger.ledger_writers import LedgerWriters

from ..quota_limits import UNLIMITED, BudgetUsage, QuotaLimits

BudgetsOf = Callable[[str], Sequence[Budget]]
"""Returns the budgets that apply to a namespace, in the order in which ledgers are written."""


class NoBudgetError(Exception):
    """A budget has no room at the location, or it is unknown; the text is a sentence."""


NO_RESERVATION: Final = Reservation("", ())


class QuotaReservations:
    """Made on the event loop."""

    def __init__(self, budgets_of: BudgetsOf, ledgers: LedgerStore, clock: Clock) -> None:
        self.changes = 0  # of ledgers and quotas, counted
        self._budgets_of = budgets_of
        self._writers = LedgerWriters(ledgers, clock)
        self._changed_at: dict[str, int] = {}
        self._quotas_changed_at = 0

    def on_ledger_change(self, name: str, seen: WatchedLedger | None) -> None:
        """A ledger that has changed, or is gone."""
        self.changes += 1
        self._changed_at[name] = self.changes
        self._writers.ledger_changed(name, seen)

    def quotas_changed(self) -> None:
        self.changes += 1
        self._quotas_changed_at = self.changes

    def changed_since(self, then: int, namespace: str) -> bool:
        """Whether more may be left to it than there was."""
        if self._quotas_changed_at > then:
            return True
        return any(self._changed_at.get(budget.ledger, 0) > then for budget in self._of(namespace))

    def limits(self, facts: PodFacts) -> QuotaLimits:
        """Returns the limits by the known ledgers. Raises NoBudgetError where none is known, and for a pod that must
        wait.
        """
        concerning = self._budgets_of(facts.namespace)
        if not concerning:
            return UNLIMITED
        for budget in concerning:
            self._check_in_time(budget, facts)
        counted = [self._counted(budget) for budget in concerning if budget.depends_on_location]
        return QuotaLimits(facts.demand.needs, counted) if counted else UNLIMITED

    def _check_in_time(self, budget: Budget, facts: PodFacts) -> None:
        """Makes a pod wait that was stored past the webhook while its budget was exceeded."""
        ledger = self._writers.of(budget).known()
        if ledger is not None and facts.uid in ledger.late:
            raise NoBudgetError(
                f"{budget.kind} {budget.title}: pod {facts.title} bypassed it while it was exceeded; "
                f"the pod waits until other pods end, or until the quota is raised"
            )

    async def reserve(self, facts: PodFacts, place: PodLocation, attempt: str) -> Reservation:
        """Reserves in all ledgers. Raises NoBudgetError, and then nothing is reserved."""
        budgets = self._of(facts.namespace)
        charges = [
            LedgerCharge(
                self._writers.of(budget), Entry(facts.namespace, facts.name, budget.counted_at(place)), budget.uid
            )
            for budget in budgets
        ]
        try:
            return await reserve_in_all(bind_reservation(facts.uid, attempt), charges, is_unique=True)
        except NotReservedError as refusal:
            raise NoBudgetError(_sentence(budgets[refusal.at], refusal.why)) from None

    def release_all(self, unbound: Iterable[PodFacts]) -> None:
        """Releases the reservations of attempts to bind these pods, once none of them can succeed any more."""
        namespaces = {facts.uid: facts.namespace for facts in unbound}
        for writer in {
            self._writers.of(budget) for namespace in {*namespaces.values()} for budget in self._of(namespace)
        }:
            ledger = writer.known()
            for reservation in ledger.reservations if ledger is not None else ():
                if is_bind_reservation(reservation) and pod_uid(reservation) in namespaces:
                    writer.release(reservation)

    def _of(self, namespace: str) -> list[Budget]:
        return [budget for budget in self._budgets_of(namespace) if budget.depends_on_location]

    def _counted(self, budget: Budget) -> BudgetUsage:
        ledger = self._writers.of(budget).known()
        if ledger is None or not ledger.is_ready or ledger.quota_uid != budget.uid:
            raise NoBudgetError(_sentence(budget, Uncounted()))
        return BudgetUsage(budget, ledger)


def _sentence(budget: Budget, why: Exceeded | Busy) -> str:
    if isinstance(why, Exceeded):
        return exceeded(budget.title, why.shortages)
    return f"{budget.kind} {budget.title}: {why}; the scheduler will try again"
