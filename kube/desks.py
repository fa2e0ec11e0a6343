"""A desk for each ledger, made when somebody first asks for a promise there."""

from __future__ import annotations

from halfcard.budgets import Budget
from halfcard.ledger import MOST_OPEN, MOST_OPEN_OF_ONE

from .ledger_desk import Clock, LedgerDesk
from .ledgers import Ledgers, Seen


class Desks:
    """Made on the event loop."""

    def __init__(self, ledgers: Ledgers, clock: Clock) -> None:
        self._ledgers = ledgers
        self._clock = clock
        self._desks: dict[str, LedgerDesk] = {}
        self._seen: dict[str, Seen] = {}

    def of(self, budget: Budget) -> LedgerDesk:
        name = budget.ledger
        desk = self._desks.get(name)
        if desk is None:
            most_of_one = MOST_OPEN if budget.namespace else MOST_OPEN_OF_ONE
            desk = self._desks[name] = LedgerDesk(self._ledgers, name, self._clock, most_of_one)
            desk.saw(self._seen.get(name))
        return desk

    def saw(self, name: str, seen: Seen | None) -> None:
        """A ledger that has changed, or is gone."""
        if seen is None:
            self._seen.pop(name, None)
        else:
            self._seen[name] = seen
        if name in self._desks:
            self._desks[name].saw(seen)
