"""Loans between two ledgers over a real connection, some of whose answers are lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

import pytest

from halfcard.dialects import Dialects
from halfcard.quota.budgets import deleted_budget
from halfcard.quota.ledger import Amounts, Entry, Ledger, reserve
from halfcard.quota.lending import Loan
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import LedgerStore
from kube.quota.budget_source import BudgetSource
from quota.charged_pods import ChargedPods
from quota.ledger_controller import LedgerController
from quota.ledgers_controller import LedgersController
from quota.loans import Loans
from serving.log import Log
from tests.kube.ledger_server import NAMESPACE, Fault, LedgerServer, serving_calls

LENDER, BORROWER = "gpuquota.team.gpu", "gpuquota.other.gpu"
LOAN: Final = Loan(LENDER, BORROWER, {"cores": 6})
LENT: Final[dict[str, Amounts]] = {BORROWER: {"cores": 6}}
BORROWED: Final[dict[str, Amounts]] = {LENDER: {"cores": 6}}


class Scene:
    """Who leads, and has taken over both ledgers: 10 cores each."""

    def __init__(self, server: LedgerServer, calls: ApiCalls) -> None:
        access = Access("127.0.0.1", server.port)
        pods = ChargedPods(access, Dialects(), lambda _: None, lambda _: None)
        ledgers = LedgerStore(calls, NAMESPACE)
        self.server = server
        self.keeping = LedgersController(
            BudgetSource(access), pods, ledgers, lambda: True, Log(), freed=lambda _: None, repaired=lambda *_: None
        )
        self.loans = Loans(self.keeping)
        self._ledgers = ledgers

    async def take_over(self, name: str) -> None:
        controller = LedgerController(self._ledgers, deleted_budget(name)._replace(uid=name, hard={"cores": 10}))
        await controller.take_over()
        await controller.commit(lambda _: False)
        self.keeping.controllers[name] = controller
        self.keeping.ledger_changed(name, self.server.seen(name))

    def lent(self) -> tuple[dict[str, Amounts], dict[str, Amounts]]:
        """By the one, and borrowed by the other, as the API server keeps it."""
        return dict(self.server.ledger(LENDER).lent), dict(self.server.ledger(BORROWER).borrowed)

    def change(self, name: str, change: Callable[[Ledger], Ledger]) -> None:
        """As a replica of the webhook does."""
        self.server.put(name, change(self.server.ledger(name)))
        self.keeping.ledger_changed(name, self.server.seen(name))


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with serving_calls() as (server, calls):
        scene = Scene(server, calls)
        for name in (LENDER, BORROWER):
            await scene.take_over(name)
        yield scene


async def test_a_loan_is_lent_borrowed_and_returned(scene: Scene) -> None:
    await scene.loans.make([LOAN])
    assert scene.lent() == (LENT, BORROWED) and scene.loans.exist
    await scene.loans.give_back([LOAN])
    assert scene.lent() == (LENT, {})
    await scene.loans.settle()
    assert scene.lent() == ({}, {}) and not scene.loans.exist


@pytest.mark.parametrize(("fault", "in_the_end"), [("unanswered", (LENT, BORROWED)), ("unheard", ({}, {}))])
async def test_a_loan_whose_borrowing_is_uncertain_stays_lent_until_it_is_known(
    fault: Fault, in_the_end: tuple[dict[str, Amounts], dict[str, Amounts]], scene: Scene
) -> None:
    scene.server.faults = [None, fault]
    await scene.loans.make([LOAN])
    await scene.loans.settle()
    assert scene.lent()[0] == LENT, "it may have been borrowed"
    await scene.take_over(BORROWER)
    await scene.loans.settle()
    assert scene.lent() == in_the_end


async def test_a_loan_that_was_not_written_by_the_lender_is_not_borrowed(scene: Scene) -> None:
    scene.server.faults = ["unheard"]
    await scene.loans.make([LOAN])
    assert scene.lent() == ({}, {})
    await scene.take_over(LENDER)
    scene.change(LENDER, lambda ledger: reserve(ledger, "u", Entry("team", "p", {"cores": 5})))
    await scene.loans.make([LOAN])
    assert scene.lent() == ({}, {}), "the lender has come to need it"


async def test_a_ledger_that_is_created_again_contains_what_others_have_borrowed_from_it(scene: Scene) -> None:
    await scene.loans.make([LOAN])
    scene.server.drop(LENDER)
    await scene.take_over(LENDER)
    await scene.loans.settle()
    assert scene.lent() == (LENT, BORROWED)
