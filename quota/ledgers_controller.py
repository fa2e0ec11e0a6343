"""Controls all ledgers while this replica leads, as quotas, pods and reservations change.

Invariant: a ledger is taken over before the list of pods that it is first counted from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from halfcard.quota.budgets import Budget, deleted_budget
from halfcard.quota.ledger import Amounts, Ledger, LostLeadership
from halfcard.quota.lending import owed
from kube.api.calls import NoAnswerError
from kube.ledger.ledger_store import LedgerError, LedgerStore, StoredLedger, WatchedLedger
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


class CountedLedger(NamedTuple):
    """A quota, its ledger, and the stored pods that it counts."""

    budget: Budget
    stored: StoredLedger
    usage: UsageIndex
    is_exempt: bool


class LedgersController:
    """Created on the event loop; `run` and `expire` are its jobs, `take_over` begins a term.

    Attributes:
        controllers: by the names of their ledgers.
        trouble: the last failure, in one sentence.
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
        """Calls `freed` with the namespaces of a budget that has more room than before, and `repaired` with a budget
        whose committed amounts another writer had changed, and with a description of the change.
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
        self._ledger_names: set[str] = set()
        self._due: set[str] = set()
        self._changed = asyncio.Event()
        self._slots = asyncio.Semaphore(_AT_ONCE)

    # --- changes ------------------------------------------------------------------------------------------------------

    def quotas_changed(self) -> None:
        """Handles changed quotas, or changed namespace labels, by which a shared quota may cover other namespaces."""
        self._recount(lambda budget: not budget.namespace)

    def time_passed(self) -> None:
        """Applies exemptions that have begun or ended."""
        if outdated := {name for name, controller in self.controllers.items() if controller.is_outdated}:
            self._due |= outdated
            self._changed.set()

    def nodes_changed(self) -> None:
        """Handles changed nodes: the location of a pod may now count more, or less."""
        self._recount(lambda budget: budget.depends_on_location)

    def _recount(self, concerned: Callable[[Budget], bool]) -> None:
        for name, controller in self.controllers.items():
            if concerned(controller.budget):
                controller.usage.mark_all()
                self._due.add(name)
        self._changed.set()

    def pods_changed(self, touched: Touched) -> None:
        for namespace, uids in touched.items():
            for budget in self._source.of(namespace):
                self._due.add(budget.ledger)
                if controller := self.controllers.get(budget.ledger):
                    controller.usage.mark(uids)
        self._changed.set()

    def ledger_changed(self, name: str, seen: WatchedLedger | None) -> None:
        controller = self.controllers.get(name)
        if seen is None:
            self._ledger_names.discard(name)
            self.controllers.pop(name, None)
            self._changed.set()
            return
        self._ledger_names.add(name)
        if controller is not None:
            controller.ledger_changed(seen)
            if controller.is_due(self._pods.has_ended):
                self._due.add(name)
                self._changed.set()

    # --- jobs ---------------------------------------------------------------------------------------------------------

    async def take_over(self) -> None:
        """Takes over all ledgers when this replica becomes the leader."""
        self.controllers.clear()
        await self._start(self._missing())
        self._log.event("leading", ledgers=len(self.controllers))

    async def run(self) -> None:
        self._recount(lambda _: True)  # a failure may have interrupted the last count
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._may_decide():
                await self._settle()
            await asyncio.sleep(_AGAIN_S if self.trouble else _REST_S)

    async def expire(self, now: Callable[[], float], is_stored: IsStored) -> None:
        async def expire(controller: LedgerController) -> None:
            await controller.expire(now, is_stored)
            self._report_room(controller)

        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            if self._may_decide():
                reserved = [controller for controller in self.controllers.values() if controller.has_reservations]
                await self._each(reserved, expire)
                await self._clear_away()

    async def _settle(self) -> None:
        self.trouble = ""
        self._follow_quotas()
        await self._commit_due(of_gone=True)  # first, so that nothing more is reserved in the ledger of a deleted quota
        if missing := self._missing():
            await self._start(missing)
        await self._commit_due()

    async def _commit_due(self, *, of_gone: bool = False) -> None:
        due = {
            name for name in self._due & self.controllers.keys() if not of_gone or not self.controllers[name].budget.uid
        }
        self._due = self._due - due if of_gone else set()
        await self._each([self.controllers[name] for name in due], self._commit)

    def _follow_quotas(self) -> None:
        budgets = {budget.ledger: budget for budget in self._source.budgets()}
        for name, controller in [*self.controllers.items()]:
            budget = budgets.get(name) or deleted_budget(name)
            if controller.budget.uid != budget.uid and budget.uid:
                del self.controllers[name]  # another quota of the same name
            elif controller.budget != budget:
                controller.budget = budget
                controller.usage.mark_all()
                self._due.add(name)

    def _missing(self) -> list[Budget]:
        """Returns quotas without a controller, and ledgers that have outlived their quota."""
        budgets = {name: deleted_budget(name) for name in self._ledger_names} | {
            each.ledger: each for each in self._source.budgets()
        }
        return [budget for name, budget in budgets.items() if name not in self.controllers]

    async def _start(self, budgets: Sequence[Budget]) -> None:
        new = [LedgerController(self._ledgers, budget) for budget in budgets]
        taken = await self._each(new, lambda controller: controller.take_over())
        if taken:
            await self._pods.informer.refresh()
        self.controllers |= {controller.budget.ledger: controller for controller in taken}
        await self._each(taken, self._commit)

    async def _commit(self, controller: LedgerController) -> None:
        budget = controller.budget
        self._count(controller.usage, budget)
        change = controller.foreign_change
        await controller.commit(self._pods.has_ended, self._lent(controller))
        if change:
            self._repaired(budget, change)
        self._report_room(controller)

    def _count(self, usage: UsageIndex, budget: Budget) -> None:
        """Counts the marked pods again."""

        def is_covered(namespace: str) -> bool:
            """Compares identities: a change of the quota may not be applied to `budget` yet."""
            return any(map(budget.is_same, self._source.of(namespace)))

        for uid in usage.take_marked(self._pods.uids_in(budget.namespace)):
            usage.put(uid, self._pods.counted_pod(uid, budget, is_covered))

    def _lent(self, controller: LedgerController) -> Mapping[str, Amounts]:
        """Returns what others have borrowed, for a newly created ledger; a ready ledger knows it."""
        stored = controller.stored
        if stored is not None and stored.ledger.is_ready:
            return {}
        written = stored.ledger.lent if stored is not None else {}
        return owed(controller.budget.ledger, self.ledgers(), written, self.not_taken_over() if written else ())

    def counted(self, budget: Budget) -> CountedLedger | None:
        """Returns what is known of a quota; None until its ledger is."""
        found = self.controllers.get(budget.ledger)
        if found is None or found.stored is None or not found.budget.is_same(budget):
            return None
        return CountedLedger(found.budget, found.stored, found.usage, found.is_exempt)

    def ledgers(self) -> dict[str, Ledger]:
        """Returns the known ledgers."""
        return {
            name: controller.stored.ledger
            for name, controller in self.controllers.items()
            if controller.stored is not None
        }

    def take_over_again(self, name: str) -> None:
        """Takes a ledger over again whose last write is uncertain."""
        self.controllers.pop(name, None)
        self._changed.set()

    def not_taken_over(self) -> set[str]:
        """Returns ledgers that exist, or should exist, and are not taken over yet."""
        return (self._ledger_names | {each.ledger for each in self._source.budgets()}) - self.ledgers().keys()

    def _report_room(self, controller: LedgerController) -> None:
        if controller.has_gained_room():
            self._freed(self._source.namespaces(controller.budget))

    async def _clear_away(self) -> None:
        """Deletes the ledgers of deleted quotas once none of their reservations can be used any more."""
        of_deleted = [controller for controller in self.controllers.values() if not controller.budget.uid]
        idle = [controller for controller in of_deleted if not controller.has_reservations]
        await self._each(idle, lambda controller: controller.delete_if_unused())

    async def _each(
        self, controllers: Sequence[LedgerController], do: Callable[[LedgerController], Awaitable[None]]
    ) -> list[LedgerController]:
        """Runs a step for each ledger; returns the successful ones, and the others stay due."""

        async def succeeds(controller: LedgerController) -> bool:
            name = controller.budget.ledger
            try:
                async with self._slots:
                    await do(controller)
            except LostLeadership:
                self.controllers.pop(name, None)
            except (LedgerError, NoAnswerError) as error:
                self.trouble = str(error)
                self._due.add(name)
            else:
                return True
            self._changed.set()
            return False

        results = await asyncio.gather(*map(succeeds, controllers))
        return [controller for controller, succeeded in zip(controllers, results, strict=True) if succeeded]
