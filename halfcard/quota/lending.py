"""Budgets of one cohort lend each other what they do not use, and get it back when it is no longer used.

Invariant: at every instant, what one ledger has borrowed is lent by another. A loan is therefore written to the
lender's ledger first, and returned in the borrower's first. If a write between the two fails, only the lender has less,
until it is corrected with what it has really lent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from .charge import COUNTED
from .ledger import Amounts, Exceeded, Ledger, ReservationBatch, Shortage, free, shortages, sum_of


class Terms(NamedTuple):
    """The conditions on which a budget lends and borrows its total; an amount that is missing has no limit."""

    cohort: str
    most_borrowed: Amounts
    most_lent: Amounts


class Loan(NamedTuple):
    """Between two ledgers, by their names."""

    lender: str
    borrower: str
    amounts: Amounts


# --- one ledger -------------------------------------------------------------------------------------------------------


def lend(ledger: Ledger, loan: Loan) -> Ledger:
    """Returns the lender's ledger after the loan. Raises Exceeded if the lender uses the amount by now."""
    if short := shortages(ledger, loan.amounts):
        raise Exceeded(short)
    return ledger._replace(lent=_changed(ledger.lent, loan.borrower, loan.amounts))


def borrow(ledger: Ledger, loan: Loan) -> Ledger:
    """Returns the borrower's ledger after the loan, which must be in the lender's ledger already."""
    return ledger._replace(borrowed=_changed(ledger.borrowed, loan.lender, loan.amounts))


def give_back(ledger: Ledger, loan: Loan) -> Ledger:
    """Returns the borrower's ledger after the return. Raises Exceeded if the amount is used by now."""
    if short := shortages(ledger, loan.amounts):
        raise Exceeded(short)
    return ledger._replace(borrowed=_changed(ledger.borrowed, loan.lender, _less(loan.amounts)))


def owed(
    lender: str, ledgers: Mapping[str, Ledger], lent: Mapping[str, Amounts], unseen: Collection[str]
) -> Mapping[str, Amounts]:
    """Returns what a lender has really lent; for borrowers that are `unseen`, what its ledger says."""
    written = {name: amounts for name, amounts in lent.items() if name in unseen}
    return written | {name: each.borrowed[lender] for name, each in ledgers.items() if lender in each.borrowed}


def lenders_of(ledgers: Mapping[str, Ledger]) -> frozenset[str]:
    """Returns the ledgers that have lent something, by their own content or by a borrower's."""
    lenders = {name for name, ledger in ledgers.items() if ledger.lent}
    return frozenset(lenders.union(*[ledger.borrowed.keys() for ledger in ledgers.values() if ledger.borrowed]))


def _changed(loans: Mapping[str, Amounts], of: str, more: Amounts) -> Mapping[str, Amounts]:
    left = Counter(loans.get(of, {}))
    left.update(more)
    return {name: amounts for name, amounts in {**loans, of: +left}.items() if amounts}


def merged(loans: Iterable[Loan]) -> list[Loan]:
    """Adds up the loans between the same two ledgers."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for loan in loans:
        found.setdefault((loan.lender, loan.borrower), Counter()).update(loan.amounts)
    return [Loan(lender, borrower, amounts) for (lender, borrower), amounts in found.items()]


# --- the choice of lenders --------------------------------------------------------------------------------------------


class Lenders:
    """The budgets of all cohorts, after the loans that were counted here.

    The budgets in `in_need` have too little themselves: they lend nothing, so that returned amounts stay with them.
    """

    def __init__(
        self,
        crowds: Mapping[str, ReservationBatch],
        ledgers: Mapping[str, Ledger],
        terms: Mapping[str, Terms],
        in_need: Collection[str] = (),
    ) -> None:
        self._crowds = crowds
        self._terms = {name: each for name, each in terms.items() if name in ledgers}
        self._in_need = in_need
        self._lent = {name: sum_of(ledgers[name].lent.values()) for name in self._terms}
        self._borrowed = {name: sum_of(ledgers[name].borrowed.values()) for name in self._terms}

    def offer(self, borrower: str, short: Iterable[Shortage]) -> list[Loan]:
        """Returns loans that make up for all shortages; none where these lenders cannot."""
        found: dict[str, dict[str, int]] = {}
        for each in short:
            parts = self._parts(borrower, each.key, each.missing)
            if sum(parts.values()) < each.missing:
                return []
            for lender, amount in parts.items():
                found.setdefault(lender, {})[each.key] = amount
        return [Loan(lender, borrower, amounts) for lender, amounts in found.items()]

    def _parts(self, borrower: str, key: str, wanted: int) -> dict[str, int]:
        """Splits a wanted total among lenders: amounts for a label, a model or a pool are never lent."""
        terms = self._terms.get(borrower)
        if (
            terms is None
            or key not in COUNTED
            or self._borrowed[borrower][key] + wanted > terms.most_borrowed.get(key, inf)
        ):
            return {}
        parts: dict[str, int] = {}
        for lender, most in self._able(borrower, terms.cohort, key):
            parts[lender] = min(most, wanted - sum(parts.values()))
        return {lender: part for lender, part in parts.items() if part > 0}

    def _able(self, borrower: str, cohort: str, key: str) -> list[tuple[str, int]]:
        """Returns the lenders and their amounts, the largest first, so that few lend to one."""
        able = [
            (name, self._lendable(name, key))
            for name, terms in self._terms.items()
            if terms.cohort == cohort and name != borrower and name not in self._in_need
        ]
        return sorted(able, key=lambda each: (-each[1], each[0]))

    def _lendable(self, lender: str, key: str) -> int:
        allowed = self._terms[lender].most_lent.get(key, inf) - self._lent[lender][key]
        return max(0, int(min(self._crowds[lender].free().get(key, 0), allowed)))

    def count(self, loans: Iterable[Loan]) -> None:
        """Counts the loans as if they were made already."""
        for loan in loans:
            self._crowds[loan.lender].allow(_less(loan.amounts))
            self._crowds[loan.borrower].allow(loan.amounts)
            self._lent[loan.lender].update(loan.amounts)
            self._borrowed[loan.borrower].update(loan.amounts)


def unused_loans(ledgers: Mapping[str, Ledger]) -> Iterator[Loan]:
    """Yields what is borrowed and not used, to be returned."""
    for name, ledger in ledgers.items():
        left = dict(free(ledger)) if ledger.borrowed else {}
        for lender, amounts in ledger.borrowed.items():
            back = {key: min(amount, max(left.get(key, amount), 0)) for key, amount in amounts.items()}
            left = {key: amount - back.get(key, 0) for key, amount in left.items()}
            if any(back.values()):
                yield Loan(lender, name, {key: amount for key, amount in back.items() if amount})


def after_return(ledgers: Mapping[str, Ledger], loans: Iterable[Loan]) -> dict[str, Ledger]:
    """Returns the ledgers after these loans are returned."""
    found = {**ledgers}
    for loan in loans:
        found[loan.borrower] = give_back(found[loan.borrower], loan)
        if (lender := found.get(loan.lender)) is not None:
            found[loan.lender] = lender._replace(lent=_changed(lender.lent, loan.borrower, _less(loan.amounts)))
    return found


def netted(loans: Iterable[Loan], back: Iterable[Loan]) -> tuple[list[Loan], list[Loan]]:
    """Cancels loans against returns: what is lent again to the budget that just returned it need not move."""
    less = [Loan(loan.lender, loan.borrower, _less(loan.amounts)) for loan in back]
    both = merged((*loans, *less))
    more = [loan._replace(amounts=_positive(loan.amounts)) for loan in both]
    fewer = [loan._replace(amounts=_positive(_less(loan.amounts))) for loan in both]
    return [each for each in more if each.amounts], [each for each in fewer if each.amounts]


def _less(amounts: Amounts) -> Amounts:
    return {key: -amount for key, amount in amounts.items()}


def _positive(amounts: Amounts) -> Amounts:
    return {key: amount for key, amount in amounts.items() if amount > 0}


def reach(hard: Amounts, terms: Terms, others: Sequence[tuple[Amounts, Terms]]) -> Amounts:
    """Returns the most that a budget can ever allow, if all `others` of its cohort lend what they may."""
    lendable = Counter[str]()
    for amounts, of in others:
        if of.cohort == terms.cohort:
            lent = {key: amounts[key] for key in COUNTED if key in amounts}
            lendable.update({key: min(amount, of.most_lent.get(key, amount)) for key, amount in lent.items()})
    return {
        key: amount + min(lendable[key], terms.most_borrowed.get(key, lendable[key])) for key, amount in hard.items()
    }
