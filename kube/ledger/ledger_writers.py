"""One LedgerWriter for each ledger, created at the first reservation there."""

from __future__ import annotations

from halfcard.quota.budgets import Budget
from halfcard.quota.ledger import MAX_RESERVATIONS, MAX_RESERVATIONS_OF_NAMESPACE

from .ledger_store import LedgerStore, WatchedLedger
from .ledger_writer import Clock, LedgerWriter


class LedgerWriters:
    """Created on the event loop."""

    def __init__(self, ledgers: LedgerStore, clock: Clock) -> None:
        self._ledgers = ledgers
        self._clock = clock
        self._writers: dict[str, LedgerWriter] = {}
        self._watched: dict[str, WatchedLedger] = {}

    def of(self, budget: Budget) -> LedgerWriter:
        name = budget.ledger
        writer = self._writers.get(name)
        if writer is None:
            max_of_namespace = MAX_RESERVATIONS if budget.namespace else MAX_RESERVATIONS_OF_NAMESPACE
            writer = self._writers[name] = LedgerWriter(self._ledgers, name, self._clock, max_of_namespace)
            writer.ledger_changed(self._watched.get(name))
        return writer

    def ledger_changed(self, name: str, watched: WatchedLedger | None) -> None:
        """Passes a changed ledger to its writer; None where it was deleted."""
        if watched is None:
            self._watched.pop(name, None)
        else:
            self._watched[name] = watched
        if name in self._writers:
            self._writers[name].ledger_changed(watched)
