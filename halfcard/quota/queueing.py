"""Orders the pods that wait for room in their budgets, and decides which of them is next.

Invariant: no pod passes another that waits for the same amount of the same budget, however small it is. A pod waits in
one budget at a time, the first in which it lacks something, and keeps no pod from any other amount. Priority goes
before age.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from .ledger import Entry, Ledger, ReservationBatch, Shortage, Uncounted
from .lending import Lenders, Loan, Terms, after_return, netted, unused_loans
from .turns import Turn

_NO_TERMS: Final[Mapping[str, Terms]] = {}


class WaitingPod(NamedTuple):
    """One gated pod.

    Attributes:
        turn: when it was created, or the pod that it replaces.
        entries: the charge in each ledger, by the ledger's name.
    """

    uid: str
    namespace: str
    pod: str
    priority: int
    turn: Turn
    entries: Mapping[str, Entry]


class BlockedPod(NamedTuple):
    """A pod that must wait, and what it waits for in the first ledger in which it lacks something.

    Attributes:
        shortages: the amounts that it lacks, and is the first to get.
        behind: by the key of an amount, the pod before it that waits for the same.
        obstacle: why nothing can be reserved in this ledger now; empty where it can.
    """

    waiting: WaitingPod
    ledger: str
    shortages: tuple[Shortage, ...] = ()
    behind: Mapping[str, WaitingPod] = {}
    obstacle: str = ""

    @property
    def keys(self) -> Iterable[str]:
        """Returns the amounts that no pod after it gets before it."""
        return {*[each.key for each in self.shortages], *self.behind}


class Queue(NamedTuple):
    """
    Attributes:
        admissible: the pods that fit once the loans are made.
        blocked: all others, in order.
        loans: the loans to make first.
        unused: the loans to return.
    """

    admissible: tuple[WaitingPod, ...]
    blocked: tuple[BlockedPod, ...]
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
    if not terms:
        return Queue(tuple(alone.openable), tuple(alone.blocked), (), tuple(back))
    helped = _Row(crowds, Lenders(crowds, there, terms, in_need={each.ledger for each in alone.blocked}))
    helped.admit(left)
    loans, still_unused = netted(helped.loans, back)
    return Queue((*alone.openable, *helped.openable), tuple(helped.blocked), tuple(loans), tuple(still_unused))


class _Row:
    """Waiting pods in order; each takes the room that the ones before it leave."""

    def __init__(self, crowds: Mapping[str, ReservationBatch], lenders: Lenders) -> None:
        self.blocked: list[BlockedPod] = []
        self.openable: list[WaitingPod] = []
        self.loans: list[Loan] = []
        self._last: dict[tuple[str, str], WaitingPod] = {}  # the last pod that waits, by ledger and key
        self._crowds = crowds
        self._lenders = lenders

    def admit(self, ordered: Iterable[WaitingPod]) -> list[WaitingPod]:
        """Admits pods in order; returns those that must wait."""
        return [each for each in ordered if self._must_stay(each)]

    def _must_stay(self, waiting: WaitingPod) -> bool:
        """Blocks the pod in the first ledger that keeps it, and there alone; otherwise admits it."""
        loans: list[Loan] = []
        for blocked in filter(None, [self._blocked_in(name, waiting) for name in waiting.entries]):
            is_first = not blocked.behind and not blocked.obstacle
            offered = self._lenders.offer(blocked.ledger, blocked.shortages) if is_first else []
            if not offered:
                self._block(blocked)
                return True
            loans += offered
        self._admit(waiting, loans)
        return False

    def _block(self, blocked: BlockedPod) -> None:
        self.blocked.append(blocked)
        self._last |= {(blocked.ledger, key): blocked.waiting for key in blocked.keys}

    def _admit(self, waiting: WaitingPod, loans: list[Loan]) -> None:
        self._lenders.count(loans)
        self.loans += loans
        self.openable.append(waiting)
        for name, entry in waiting.entries.items():
            self._crowds[name].reserve(waiting.uid, entry)

    def _blocked_in(self, name: str, waiting: WaitingPod) -> BlockedPod | None:
        crowd, entry = self._crowds.get(name), waiting.entries[name]
        if crowd is None:
            return BlockedPod(waiting, name, obstacle=str(Uncounted()))
        if crowd.has(waiting.uid):
            return None
        before = {key: self._last.get((name, key)) for key, amount in entry.charge.items() if amount}
        behind = {key: pod for key, pod in before.items() if pod is not None}
        short = tuple([each for each in crowd.shortages(entry) if each.key not in behind])
        obstacle = crowd.obstacle(entry)
        return BlockedPod(waiting, name, short, behind, obstacle) if short or behind or obstacle else None


def in_order(waiting: Iterable[WaitingPod]) -> list[WaitingPod]:
    return sorted(waiting, key=lambda each: (-each.priority, each.turn, each.namespace, each.pod))
