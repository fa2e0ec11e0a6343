"""Whatever is lent and whatever fails: together, the budgets never use more than their limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from halfcard.quota import lending
from halfcard.quota.ledger import Amounts, Ledger
from halfcard.quota.lending import Loan

from .cohort_world import CORES, HARD, Rules, World
from .planting import assert_is_found

NAMES: Final = st.sampled_from([*HARD])
ANY: Final = st.integers(0, 50)


class Life(RuleBasedStateMachine):
    obeyed = Rules()

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.obeyed)

    @rule(name=NAMES, cores=st.integers(1, 6))
    def somebody_comes(self, name: str, cores: int) -> None:
        self.world.reserve(name, cores)

    @rule(name=NAMES, which=ANY)
    def somebody_ends(self, name: str, which: int) -> None:
        self.world.end(name, which)

    @rule()
    def who_leads_plans(self) -> None:
        self.world.plans()

    @precondition(lambda self: self.world.steps)
    @rule(answer=st.sampled_from(["arrives", "arrives", "arrives", "lost", "late"]))
    def a_step_is_done(self, answer: str) -> None:
        self.world.does(answer)

    @precondition(lambda self: self.world.steps)
    @rule()
    def all_steps_are_done(self) -> None:
        while self.world.steps:
            self.world.does()

    @precondition(lambda self: self.world.late)
    @rule(which=ANY)
    def a_write_lands_late(self, which: int) -> None:
        self.world.lands(which % len(self.world.late))

    @rule()
    def who_leads_takes_over_anew(self) -> None:
        self.world.takes_over_anew()

    @rule()
    def who_leads_looks(self) -> None:
        self.world.looks()

    @rule()
    def somebody_else_leads(self) -> None:
        self.world.takes_over()

    @invariant()
    def what_is_borrowed_is_lent(self) -> None:
        assert self.world.wrong() == []

    def teardown(self) -> None:
        self.world.rests()
        assert self.world.loans() == []


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


# --- broken rules -----------------------------------------------------------------------------------------------------


def lending_what_is_used(ledger: Ledger, loan: Loan) -> Ledger:
    return lending.lend(ledger._replace(reservations={}), loan)._replace(reservations=ledger.reservations)


def giving_back_what_is_used(ledger: Ledger, loan: Loan) -> Ledger:
    return lending.give_back(ledger._replace(reservations={}), loan)._replace(reservations=ledger.reservations)


def borrowing_twice(ledger: Ledger, loan: Loan) -> Ledger:
    return lending.borrow(lending.borrow(ledger, loan), loan)


def forgetting_the_unseen(
    lender: str, ledgers: Mapping[str, Ledger], lent: Mapping[str, Amounts], _unseen: Collection[str]
) -> Mapping[str, Amounts]:
    return lending.owed(lender, ledgers, lent, ())


def owed_for_ever(
    _lender: str, _ledgers: Mapping[str, Ledger], lent: Mapping[str, Amounts], _unseen: Collection[str]
) -> Mapping[str, Amounts]:
    return lent


BROKEN: Final = {
    "what is used is lent": Rules(lend=lending_what_is_used),
    "more is borrowed than was lent": Rules(borrow=borrowing_twice),
    "it is borrowed before it is lent": Rules(lends_first=False),
    "a loan that was given back is never settled": Rules(owed=owed_for_ever),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_each_rule_is_needed(broken: Rules) -> None:
    class Broken(Life):
        obeyed = broken

    assert_is_found(Broken)


def a_loan_lands_after_all(world: World) -> None:
    """The borrower's second write arrives after the lender counted what it is owed."""
    for _ in range(3):
        world.reserve("b", 3)
    world.looks()
    world.plans()
    while world.written["a"][0].lent == {}:
        world.does()
    world.does("late")
    world.waiting.clear()
    world.plans()
    while world.steps:
        world.does()
    world.lands(0)


def what_was_free_is_used_before_it_goes_back(world: World) -> None:
    for _ in range(4):
        world.reserve("b", 3)
    world.settles_down()
    world.end("b", 0)
    world.looks()
    world.plans()
    world.reserve("b", 3)
    while world.steps:
        world.does()
    for name, cores in (("a", 4), ("a", 3), ("c", 3)):
        world.reserve(name, cores)


@pytest.mark.parametrize(
    ("history", "broken"),
    [
        (a_loan_lands_after_all, Rules(owed=forgetting_the_unseen)),
        (a_loan_lands_after_all, Rules(takes_over_anew=False)),
        (what_was_free_is_used_before_it_goes_back, Rules(give_back=giving_back_what_is_used)),
    ],
)
def test_histories_that_chance_finds_late(history: Callable[[World], None], broken: Rules) -> None:
    assert after(history, Rules()) == []
    assert after(history, broken) != []


def after(history: Callable[[World], None], obeyed: Rules) -> list[str]:
    world = World(obeyed)
    history(world)
    return world.wrong()


# --- by hand ----------------------------------------------------------------------------------------------------------


def planned(world: World) -> World:
    world.settles_down()
    return world


def used(world: World) -> dict[str, int]:
    return {
        name: sum(each.charge[CORES] for each in ledger.reservations.values())
        for name, (ledger, _) in world.written.items()
    }


def test_unused_amounts_may_be_used_by_others() -> None:
    world = World()
    for _ in range(5):
        world.reserve("b", 3)
    assert used(planned(world)) == {"a": 0, "b": 12, "c": 0}, "no more than 8 may be borrowed, and pods are of 3"


def test_the_lender_gets_its_amount_back_first() -> None:
    world = World()
    for _ in range(4):
        world.reserve("b", 3)
    planned(world)
    world.reserve("a", 8)
    world.reserve("b", 3)
    assert used(planned(world)) == {"a": 0, "b": 12, "c": 0}, "no pod is evicted"
    world.end("b", 0)
    assert used(planned(world)) == {"a": 8, "b": 9, "c": 0}, "though b was asked first"
