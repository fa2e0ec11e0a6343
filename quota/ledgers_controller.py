"""Controls all ledgers while this replica leads, as quotas, pods and reservations change.

Invariant: a ledger is taken over before the list of pods that it is first counted from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from halfcard.quota.budgets import Budget, deleted_budget
from halfcard.quota.ledger import Amounts, Ledger, LostLeadership
from halfcard.quota.lending import owed
from kube.api.calls import NoAnswerError
from kube.ledger.ledger_store import LedgerError, LedgerStore, WatchedLedger
from kube.quota.budget_source import BudgetSource
from serving.log import Log

from .charged_pods import ChargedPods, Touched
from .ledger_controller import IsStored, LedgerController
from .usage_index import UsageIndex

_REST_S: Final = 0.2
"""One ledger is committed at most five times a second, so that reservations can be written in between."""

_AGAIN_S: Final = 1.0
_LOOK_EVERY_S: Final = 3.0
_AT_ONCE: Final = 16


class LedgersController:
    """Made on the event loop; `run` and `expire` are its jobs, `take_over` begins a term.

    Attributes:
        keepers: by the names of their ledgers.
        trouble: what went wrong last, in one sentence.
    """

    def __init__(
        self,
        source: BudgetSource,
        pods: ChargedPods,
        ledgers: LedgerStore,
        may_decide: Callable[[], bool],
        log: Log,
        *,
        freed: Callable[[Iterable[str]], None],
        repaired: Callable[[Budget, str], None],
    ) -> None:
        """Calls `freed` with the namespaces of a budget that has more room than before, and `repaired` with one whose
        ledger said of its pods what was not true, and what it said.
        """
        self.controllers: dict[str, LedgerController] = {}
        self.trouble = ""
        self._source = source
        self._pods = pods
        self._ledgers = ledgers
        self._may_decide = may_decide
        self._log = log
        self._freed = freed
        self._repaired = repaired
        self._there: set[str] = set()
        self._due: set[str] = set()
        self._stirred = asyncio.Event()
        self._turns = asyncio.Semaphore(_AT_ONCE)

    # --- what is seen -------------------------------------------------------------------------------------------------

    def quotas_changed(self) -> None:
        """Handles changed quotas, or changed namespace labels, by which a shared quota may cover other namespaces."""
        self._count_anew(lambda budget: not budget.namespace)

    def time_passed(self) -> None:
        """An exemption may have begun or ended."""
        if outdated := {name for name, keeper in self.controllers.items() if keeper.is_outdated}:
            self._due |= outdated
            self._stirred.set()

    def nodes_changed(self) -> None:
        """Handles changed nodes: the location of a pod may now count more, or less."""
        self._count_anew(lambda budget: budget.depends_on_location)

    def _count_anew(self, concerned: Callable[[Budget], bool]) -> None:
        for name, keeper in self.controllers.items():
            if concerned(keeper.budget):
                keeper.usage.mark_all()
                self._due.add(name)
        self._stirred.set()

    def pods_changed(self, touched: Touched) -> None:
        for namespace, uids in touched.items():
            for budget in self._source.of(namespace):
                self._due.add(budget.ledger)
                if keeper := self.controllers.get(budget.ledger):
                    keeper.usage.mark(uids)
        self._stirred.set()

    def ledger_changed(self, name: str, seen: WatchedLedger | None) -> None:
        keeper = self.controllers.get(name)
        if seen is None:
            self._there.discard(name)
            self.controllers.pop(name, None)
            self._stirred.set()
            return
        self._there.add(name)
        if keeper is not None:
            keeper.ledger_changed(seen)
            if keeper.is_due(self._pods.has_ended):
                self._due.add(name)
                self._stirred.set()

    # --- what is done -------------------------------------------------------------------------------------------------

    async def take_over(self) -> None:
        self.controllers.clear()
        await self._adopt(self._missing())
        self._log.event("leading", ledgers=len(self.controllers))

    async def run(self) -> None:
        self._count_anew(lambda _: True)  # what was being counted when this failed last may not have been
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            if self._may_decide():
                await self._settle()
            await asyncio.sleep(_AGAIN_S if self.trouble else _REST_S)

    async def expire(self, now: Callable[[], float], is_stored: IsStored) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            if self._may_decide():
                opened = [keeper for keeper in self.controllers.values() if keeper.has_reservations]
                await self._each(opened, lambda keeper: self._expire(keeper, now, is_stored))
                await self._clear_away()

    async def _settle(self) -> None:
        self.trouble = ""
        self._follow_quotas()
        await self._commit_due(of_gone=True)  # first, so that nothing more is reserved in the ledger of a deleted quota
        if missing := self._missing():
            await self._adopt(missing)
        await self._commit_due()

    async def _commit_due(self, *, of_gone: bool = False) -> None:
        due = {
            name for name in self._due & self.controllers.keys() if not of_gone or not self.controllers[name].budget.uid
        }
        self._due = self._due - due if of_gone else set()
        await self._each([self.controllers[name] for name in due], self._commit)

    def _follow_quotas(self) -> None:
        budgets = {budget.ledger: budget for budget in self._source.budgets()}
        for name, keeper in [*self.controllers.items()]:
            budget = budgets.get(name) or deleted_budget(name)
            if keeper.budget.uid != budget.uid and budget.uid:
                del self.controllers[name]  # made anew under its name, and so is its ledger
            elif keeper.budget != budget:
                keeper.budget = budget
                keeper.usage.mark_all()
                self._due.add(name)

    def _missing(self) -> list[Budget]:
        """Returns quotas without a controller, and ledgers that have outlived their quota."""
        budgets = {name: deleted_budget(name) for name in self._there} | {
            each.ledger: each for each in self._source.budgets()
        }
        return [budget for name, budget in budgets.items() if name not in self.controllers]

    async def _adopt(self, budgets: Sequence[Budget]) -> None:
        new = [LedgerController(self._ledgers, budget) for budget in budgets]
        taken = await self._each(new, lambda keeper: keeper.take_over())
        if taken:
            await self._pods.informer.refresh()
        self.controllers |= {keeper.budget.ledger: keeper for keeper in taken}
        await self._each(taken, self._commit)

    async def _commit(self, keeper: LedgerController) -> None:
        budget = keeper.budget
        self._count(keeper.usage, budget)
        altered = keeper.foreign_change
        await keeper.commit(self._pods.has_ended, self._lent(keeper))
        if altered:
            self._repaired(budget, altered)
        self._tell_of_room(keeper)

    def _count(self, holding: UsageIndex, budget: Budget) -> None:
        """Marks pods to be counted; when a namespace leaves a budget, all of them."""
        everywhere = (budget.namespace,) if budget.namespace else self._pods.namespaces()
        for uid in holding.take_marked(self._pods.uids_in(everywhere)):
            holding.put(uid, self._pods.counted_pod(uid, budget, partial(self._concerns, budget)))

    def _concerns(self, budget: Budget, namespace: str) -> bool:
        """Returns whether the budget covers a namespace, also by its definition before a change that is not applied
        yet.
        """
        return any(map(budget.is_same, self._source.of(namespace)))

    def _lent(self, keeper: LedgerController) -> Mapping[str, Amounts]:
        """Returns what others have borrowed, for a newly created ledger; a ready ledger knows it."""
        kept = keeper.stored
        if kept is not None and kept.ledger.is_ready:
            return {}
        written = kept.ledger.lent if kept is not None else {}
        return owed(keeper.budget.ledger, self.ledgers(), written, self.not_taken_over() if written else ())

    def ledgers(self) -> dict[str, Ledger]:
        """Returns the known ledgers."""
        return {name: keeper.stored.ledger for name, keeper in self.controllers.items() if keeper.stored is not None}

    def take_over_again(self, name: str) -> None:
        """Takes a ledger over again whose last write is uncertain."""
        self.controllers.pop(name, None)
        self._stirred.set()

    def not_taken_over(self) -> set[str]:
        """Ledgers that are there, or are to be, and not ours yet."""
        return (self._there | {each.ledger for each in self._source.budgets()}) - self.ledgers().keys()

    def _tell_of_room(self, keeper: LedgerController) -> None:
        if keeper.has_gained_room():
            self._freed(self._source.namespaces(keeper.budget))

    async def _expire(self, keeper: LedgerController, now: Callable[[], float], is_stored: IsStored) -> None:
        await keeper.expire(now, is_stored)
        self._tell_of_room(keeper)

    async def _clear_away(self) -> None:
        """Deletes the ledgers of deleted quotas once none of their reservations can be used any more."""
        idle = [keeper for keeper in self.controllers.values() if not keeper.budget.uid and not keeper.has_reservations]
        await self._each(idle, lambda keeper: keeper.delete_if_unused())

    async def _each(
        self, keepers: Sequence[LedgerController], do: Callable[[LedgerController], Awaitable[None]]
    ) -> list[LedgerController]:
        """Runs a step for each ledger; returns the successful ones, and the others stay due."""

        async def one(keeper: LedgerController) -> bool:
            async with self._turns:
                return await self._done(keeper, do)

        went_well = await asyncio.gather(*[one(keeper) for keeper in keepers])
        return [keeper for keeper, well in zip(keepers, went_well, strict=True) if well]

    async def _done(self, keeper: LedgerController, do: Callable[[LedgerController], Awaitable[None]]) -> bool:
        name = keeper.budget.ledger
        try:
            await do(keeper)
        except LostLeadership:
            self.controllers.pop(name, None)
        except (LedgerError, NoAnswerError) as error:
            self.trouble = str(error)
            self._due.add(name)
        else:
            return True
        self._stirred.set()
        return False
