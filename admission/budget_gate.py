"""Pods that are to be stored are promised their part of every GpuQuota that concerns them, or refused.

The law: a pod passes only with a promise of every budget; a pod that is refused keeps none that this call made for it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from halfcard import names
from halfcard.asks import read_pod
from halfcard.budget_words import exceeded
from halfcard.budgets import Budget
from halfcard.charges import charge
from halfcard.ledger import MOST_OPEN, MOST_OPEN_OF_ONE, Amounts, Busy, Entry, Full
from halfcard.placing.demand import needs_of
from halfcard.problems import MAX_MESSAGE_BYTES, clipped
from halfcard.stored import StoredPod
from kube.budget_source import BudgetSource
from kube.ledgers import Ledgers, Seen

from .ledger_desk import LedgerDesk
from .policy import Policy
from .review import NoRoom, Verdict
from .wire import Request

_AGAIN_S: Final = 1
_UNSEEN: Final = NoRoom("Halfcard has just begun and does not know the GpuQuotas yet: try again", _AGAIN_S)


class _Wanted(NamedTuple):
    """What one budget counts of the pod."""

    budget: Budget
    desk: LedgerDesk
    entry: Entry


class BudgetGate:
    """Made on the event loop."""

    def __init__(self, source: BudgetSource, ledgers: Ledgers, policy: Policy) -> None:
        self._source = source
        self._ledgers = ledgers
        self._policy = policy
        self._desks: dict[str, LedgerDesk] = {}

    def saw(self, name: str, seen: Seen | None) -> None:
        """A ledger that has changed."""
        desk = self._desks.get(name)
        if desk is not None:
            desk.saw(seen)

    async def __call__(self, request: Request, verdict: Verdict) -> Verdict:
        namespace = request.namespace or ""
        is_new_pod = request.operation == "CREATE" and request.kind.kind == "Pod" and not request.sub_resource
        if not is_new_pod or namespace in self._policy.exempt_namespaces:
            return verdict
        if not self._source.ready:
            return verdict._replace(no_room=_UNSEEN)
        budgets = self._source.of(namespace)
        if not budgets:
            return verdict
        pod = msgspec.convert(request.object, StoredPod)
        wanted = self._wanted(pod, namespace, budgets)
        runs_already = pod.is_mirror and request.user_info.username.startswith(names.NODE_USERS)
        if not wanted or runs_already:
            return verdict
        why = await (_ask(wanted) if request.dry_run else _reserve(wanted, pod.meta.uid))
        return verdict._replace(no_room=why)

    def _wanted(self, pod: StoredPod, namespace: str, budgets: Sequence[Budget]) -> list[_Wanted]:
        asked = charge(needs_of(read_pod(pod, self._policy.dialects))[1])
        if not asked:
            return []
        found = []
        for budget in budgets:
            cost: Amounts = budget.cost(asked, pod.labels)
            found.append(_Wanted(budget, self._desk(budget), Entry(namespace, pod.meta.title, cost)))
        return found

    def _desk(self, budget: Budget) -> LedgerDesk:
        desk = self._desks.get(budget.ledger)
        if desk is None:
            most_of_one = MOST_OPEN if budget.namespace else MOST_OPEN_OF_ONE
            desk = LedgerDesk(self._ledgers, budget.ledger, time.monotonic, most_of_one)
            self._desks[budget.ledger] = desk
        return desk


async def _reserve(wanted: Sequence[_Wanted], uid: str) -> NoRoom | None:
    own: list[LedgerDesk] = []
    for at, each in enumerate(wanted):
        try:
            if await each.desk.promise(uid, each.entry, each.budget.uid):
                own.append(each.desk)
        except Full as full:
            _take_back(own, uid)
            return _full([(each, full), *_also_short(wanted[at + 1 :])])
        except Busy as busy:
            _take_back(own, uid)
            return _busy(each, busy)
    return None


async def _ask(wanted: Sequence[_Wanted]) -> NoRoom | None:
    """What would be answered; nobody is promised anything."""
    for at, each in enumerate(wanted):
        try:
            await each.desk.would_promise(each.entry, each.budget.uid)
        except Full as full:
            return _full([(each, full), *_also_short(wanted[at + 1 :])])
        except Busy as busy:
            return _busy(each, busy)
    return None


def _take_back(desks: Sequence[LedgerDesk], uid: str) -> None:
    for desk in desks:
        desk.take_back(uid)


def _also_short(wanted: Sequence[_Wanted]) -> list[tuple[_Wanted, Full]]:
    found = [(each, each.desk.shortages(each.entry)) for each in wanted]
    return [(each, Full(shortages)) for each, shortages in found if shortages]


def _full(refused: Sequence[tuple[_Wanted, Full]]) -> NoRoom:
    told = " | ".join(exceeded(each.budget.title, full.shortages) for each, full in refused)
    return NoRoom(clipped(told, MAX_MESSAGE_BYTES))


def _busy(each: _Wanted, busy: Busy) -> NoRoom:
    what = f"{each.budget.kind} {each.budget.title} cannot be asked right now: {busy}; try again"
    return NoRoom(clipped(what, MAX_MESSAGE_BYTES), _AGAIN_S)
