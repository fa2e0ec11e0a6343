"""Makes and returns loans between ledgers while this replica leads, one step after the other.

The rules are in halfcard/quota/lending.py. When the answer to a write is lost, the leader takes over the borrower's
ledger again before it relies on its content, so that the uncertain write can no longer land.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from halfcard.quota.ledger import Exceeded, Ledger, LostLeadership
from halfcard.quota.lending import Loan, borrow, give_back, lend, lenders_of, owed
from kube.api.calls import NoAnswerError
from kube.ledger.ledger_store import LedgerError

from .ledgers_controller import LedgersController

_FAILURES = (LostLeadership, LedgerError, NoAnswerError)


@dataclass(frozen=True, slots=True)
class Loans:
    ledgers: LedgersController

    @property
    def exist(self) -> bool:
        return any(each.lent or each.borrowed for each in self.ledgers.ledgers().values())

    async def settle(self) -> None:
        """Corrects what lenders have lent: less where something was returned, or never borrowed."""
        ledgers = self.ledgers.ledgers()
        lenders = lenders_of(ledgers) & ledgers.keys()
        unseen = self.ledgers.not_taken_over() if lenders else set()
        for name in lenders:
            repaired = partial(_repaired, name, ledgers, unseen)
            if repaired(ledgers[name]) != ledgers[name]:
                await self._change(name, repaired)

    async def give_back(self, unused: Iterable[Loan]) -> None:
        for loan in unused:
            await self._change(loan.borrower, partial(give_back, loan=loan))

    async def make(self, loans: Iterable[Loan]) -> None:
        for loan in loans:
            if await self._change(loan.lender, partial(lend, loan=loan)):
                await self._change(loan.borrower, partial(borrow, loan=loan))

    async def _change(self, name: str, change: Callable[[Ledger], Ledger]) -> bool:
        """Changes a ledger; returns whether it is written."""
        controller = self.ledgers.controllers.get(name)
        try:
            if controller is not None:
                await controller.change(change)
                return True
        except Exceeded:
            return False  # another pod has reserved it first
        except _FAILURES:
            self.ledgers.take_over_again(name)
        return False


def _repaired(lender: str, ledgers: Mapping[str, Ledger], unseen: Collection[str], ledger: Ledger) -> Ledger:
    return ledger._replace(lent=owed(lender, ledgers, ledger.lent, unseen))
