"""What is lent to which budget, and from which lender."""

from __future__ import annotations

from typing import Final

import pytest

from halfcard.quota.ledger import Amounts, Entry, Exceeded, Ledger, ReservationBatch, Shortage, allowed
from halfcard.quota.lending import Lenders, Loan, Terms, borrow, give_back, lend, merged, netted, reach, unused_loans

TERMS: Final = Terms("team", {}, {})


def ledger(cores: int, used: int = 0) -> Ledger:
    return Ledger({"cores": cores}, is_ready=True, committed={"cores": used} if used else {})


def lenders(ledgers: dict[str, Ledger], terms: dict[str, Terms], *wanting: str) -> Lenders:
    crowds = {name: ReservationBatch(each) for name, each in ledgers.items()}
    return Lenders(crowds, ledgers, terms, wanting)


def short(missing: int, key: str = "cores") -> Shortage:
    return Shortage(key, missing, 10, 10)


THREE: Final = {"a": ledger(10, 10), "b": ledger(10, 4), "c": ledger(10, 8)}


@pytest.mark.parametrize(
    ("missing", "terms", "expected"),
    [
        (5, {}, {"b": 5}),  # who has most, alone
        (7, {}, {"b": 6, "c": 1}),  # and then the next
        (9, {}, {}),  # half of it is not enough
        (5, {"b": Terms("team", {}, {"cores": 4})}, {"b": 4, "c": 1}),
        (5, {"b": Terms("others", {}, {})}, {}),
        (5, {"a": Terms("team", {"cores": 4}, {})}, {}),
        (5, {"a": Terms("team", {"memory": 4}, {})}, {"b": 5}),  # what a limit does not name has none
    ],
)
def test_lenders_and_amounts(missing: int, terms: dict[str, Terms], expected: Amounts) -> None:
    offered = lenders(THREE, {**dict.fromkeys("abc", TERMS), **terms}).offer("a", [short(missing)])
    assert {loan.lender: loan.amounts["cores"] for loan in offered} == expected


def test_a_budget_that_has_too_little_itself_lends_nothing() -> None:
    assert lenders(THREE, dict.fromkeys("abc", TERMS), "b").offer("a", [short(5)]) == []


def test_limits_per_label_value_or_model_are_not_lent() -> None:
    parts = {name: Ledger({"cores of model T4": 10, "cores per user": 10}, is_ready=True) for name in "ab"}
    able = lenders(parts, dict.fromkeys("ab", TERMS))
    assert able.offer("a", [short(1, "cores of model T4")]) == able.offer("a", [short(1, "cores per user=ann")]) == []


def test_an_amount_is_lent_only_once() -> None:
    able = lenders(THREE, dict.fromkeys("abc", TERMS))
    able.count(able.offer("a", [short(6)]))
    assert able.offer("a", [short(3)]) == []


def test_a_loan_moves_limits_and_is_returned_completely() -> None:
    loan = Loan("b", "a", {"cores": 6})
    lent, borrowed = lend(THREE["b"], loan), borrow(THREE["a"], loan)
    assert (allowed(lent), allowed(borrowed)) == ({"cores": 4}, {"cores": 16})
    with pytest.raises(Exceeded):
        lend(lent, Loan("b", "c", {"cores": 1}))
    assert give_back(borrowed, loan) == THREE["a"]
    busy = borrowed._replace(reservations={"uid": Entry("a", "p", {"cores": 1})})
    with pytest.raises(Exceeded):
        give_back(busy, loan)
    assert [*unused_loans({"a": busy, "b": lent})] == [Loan("b", "a", {"cores": 5})]


def test_an_amount_without_a_limit_needs_no_loan() -> None:
    borrowed = borrow(ledger(0), Loan("b", "a", {"cores": 6}))
    assert [*unused_loans({"a": borrowed._replace(hard={}, committed={"cores": 6})})] == [Loan("b", "a", {"cores": 6})]


def test_a_loan_that_is_returned_and_made_again_does_not_move() -> None:
    back = [Loan("b", "a", {"cores": 5}), Loan("c", "a", {"cores": 2})]
    loans = [Loan("b", "a", {"cores": 3}), Loan("b", "a", {"cores": 4}), Loan("c", "d", {"cores": 1})]
    assert netted(loans, back) == (
        [Loan("b", "a", {"cores": 2}), Loan("c", "d", {"cores": 1})],
        [Loan("c", "a", {"cores": 2})],
    )
    assert netted(back, merged(back)) == ([], [])


def test_no_pod_waits_for_more_than_its_cohort_can_lend() -> None:
    others = [
        ({"cores": 50, "cores per user": 9}, Terms("team", {}, {"cores": 20})),
        ({"cores": 30}, TERMS),
        ({"cores": 900}, Terms("others", {}, {})),
    ]
    hard = {"cores": 10, "memory": 1, "cores per user": 1}
    assert reach(hard, TERMS, others) == {"cores": 60, "memory": 1, "cores per user": 1}
    assert reach(hard, Terms("team", {"cores": 15}, {}), others)["cores"] == 25
