"""Orders the pods that wait for room in their budgets, and decides which of them is next.

Invariant: no pod passes another that waits for the same budget: the first one blocks those behind it, however small
they are. Priority goes before age.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from .ledger import Busy, Entry, Exceeded, Ledger, ReservationBatch, Shortage
from .lending import Lenders, Loan, Terms, after_return, netted, unused_loans

_NO_TERMS: Final[Mapping[str, Terms]] = {}


class WaitingPod(NamedTuple):
    """One gated pod.

    Attributes:
        created: in the API server's format, which sorts as text.
        entries: the charge in each ledger, by the ledger's name.
    """

    uid: str
    namespace: str
    pod: str
    priority: int
    created: str
    entries: Mapping[str, Entry]


class BlockedPod(NamedTuple):
    """The first pod that waits for a ledger, and its shortages; no shortages where they are not known yet."""

    waiting: WaitingPod
    ledger: str
    shortages: tuple[Shortage, ...]


class Queue(NamedTuple):
    """
    Attributes:
        admissible: the pods that fit once the loans are made.
        first_blocked: the first pod that waits for each ledger.
        loans: the loans to make first.
        unused: the loans to return.
    """

    admissible: tuple[WaitingPod, ...]
    first_blocked: tuple[BlockedPod, ...]
    loans: tuple[Loan, ...] = ()
    unused: tuple[Loan, ...] = ()


def queue(
    waiting: Iterable[WaitingPod], ledgers: Mapping[str, Ledger], terms: Mapping[str, Terms] = _NO_TERMS
) -> Queue:
    """Decides which pods are admitted; `terms` are those of the budgets that lend and borrow, by ledger name.

    Unused loans are returned first, and a budget's own amount is for its own pods first, whatever their age.
    """
    ordered = in_order(waiting)
    names = {name for each in ordered for name in each.entries} | terms.keys()
    concerned = {name: ledger for name, ledger in ledgers.items() if name in names or ledger.borrowed}
    back = [*unused_loans(concerned)]
    there = after_return(concerned, back)
    crowds = {name: ReservationBatch(ledger) for name, ledger in there.items()}
    alone = _Row(crowds, Lenders(crowds, there, _NO_TERMS))
    left = alone.admit(ordered)
    helped = _Row(crowds, Lenders(crowds, there, terms, in_need=alone.blocked))
    helped.admit(left)
    loans, still_unused = netted(helped.loans, back)
    return Queue((*alone.openable, *helped.openable), tuple(helped.first), tuple(loans), tuple(still_unused))


class _Row:
    """Waiting pods in order; each takes the room that the ones before it leave."""

    def __init__(self, crowds: Mapping[str, ReservationBatch], lenders: Lenders) -> None:
        self.blocked: set[str] = set()
        self.openable: list[WaitingPod] = []
        self.first: list[BlockedPod] = []
        self.loans: list[Loan] = []
        self._crowds = crowds
        self._lenders = lenders

    def admit(self, ordered: Iterable[WaitingPod]) -> list[WaitingPod]:
        """Admits pods in order; returns those that must wait."""
        return [each for each in ordered if self._must_stay(each)]

    def _must_stay(self, waiting: WaitingPod) -> bool:
        stays = not self.blocked.isdisjoint(waiting.entries) or not self._step_forward(waiting)
        if stays:
            self.blocked |= waiting.entries.keys()
        return stays

    def _step_forward(self, waiting: WaitingPod) -> bool:
        loans: list[Loan] = []
        for obstacle in filter(None, [self._obstacle(waiting, name) for name in waiting.entries]):
            offered = self._lenders.offer(obstacle.ledger, obstacle.shortages)
            if not offered:
                self.first.append(obstacle)
                return False
            loans += offered
        self._lenders.count(loans)
        self.loans += loans
        self.openable.append(waiting)
        for name, entry in waiting.entries.items():
            self._crowds[name].reserve(waiting.uid, entry)
        return True

    def _obstacle(self, waiting: WaitingPod, name: str) -> BlockedPod | None:
        crowd = self._crowds.get(name)
        if crowd is None:
            return BlockedPod(waiting, name, ())
        try:
            crowd.check(waiting.uid, waiting.entries[name])
        except Exceeded as full:
            return BlockedPod(waiting, name, full.shortages)
        except Busy:
            return BlockedPod(waiting, name, ())
        return None


def in_order(waiting: Iterable[WaitingPod]) -> list[WaitingPod]:
    return sorted(waiting, key=lambda each: (-each.priority, each.created, each.namespace, each.pod))
