"""One LedgerWriter for each ledger, created at the first reservation there."""

from __future__ import annotations

from halfcard.quota.budgets import Budget
from halfcard.quota.ledger import MAX_RESERVATIONS, MAX_RESERVATIONS_OF_NAMESPACE

from .ledger_store import LedgerStore, WatchedLedger
from .ledger_writer import Clock, LedgerWriter


class LedgerWriters:
    """Made on the event loop."""

    def __init__(self, ledgers: LedgerStore, clock: Clock) -> None:
        self._ledgers = ledgers
        self._clock = clock
        self._desks: dict[str, LedgerWriter] = {}
        self._seen: dict[str, WatchedLedger] = {}

    def of(self, budget: Budget) -> LedgerWriter:
        name = budget.ledger
        desk = self._desks.get(name)
        if desk is None:
            most_of_one = MAX_RESERVATIONS if budget.namespace else MAX_RESERVATIONS_OF_NAMESPACE
            desk = self._desks[name] = LedgerWriter(self._ledgers, name, self._clock, most_of_one)
            desk.ledger_changed(self._seen.get(name))
        return desk

    def ledger_changed(self, name: str, seen: WatchedLedger | None) -> None:
        """A ledger that has changed, or is gone."""
        if seen is None:
            self._seen.pop(name, None)
        else:
            self._seen[name] = seen
        if name in self._desks:
            self._desks[name].ledger_changed(seen)
