"""Pods that were refused and would find a card now: kube-scheduler is made to ask for them again.

The scheduler asks again about a refused pod when something changes in the cluster. It may see a change a moment before
we do, ask at once and be refused by what was true until then: after that it would ask again in five minutes. A change
of the pod itself is a change too.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from halfcard import names
from halfcard.placing.demand import Demand
from halfcard.placing.pod_facts import PodFacts
from kube.api.calls import ApiCalls, NoAnswerError

from ..bind.pod_requests import pod_path
from ..bind.quota_reservations import NoBudgetError, QuotaReservations
from ..scheduler_api.answer_cache import FITS, AnswerCache
from ..state import State

_PAUSE_S: Final = 1.0
"""The scheduler has asked by itself long before."""
_AT_ONCE: Final = 20
"""A round; who is left out is first in the next one."""
_MOST_WAITING: Final = 20_000


_Alike = tuple[str, Demand]
"""In the same namespace, with the same needs."""


class _Refusal(NamedTuple):
    """When: how far the changes of the state had come, and those of budgets."""

    facts: PodFacts
    then: int
    budgets_then: int


class Requeue:
    def __init__(self, state: State, answers: AnswerCache, calls: ApiCalls, budgets: QuotaReservations) -> None:
        self._state = state
        self._answers = answers
        self._calls = calls
        self._budgets = budgets
        self._refused: OrderedDict[str, _Refusal] = OrderedDict()

    def add(self, facts: PodFacts) -> None:
        """Everywhere: the pod waits from now on."""
        self._refused[facts.uid] = _Refusal(facts, self._state.changes.now, self._budgets.changes)
        self._refused.move_to_end(facts.uid)
        if len(self._refused) > _MOST_WAITING:
            self._refused.popitem(last=False)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE_S)
            for facts in [*islice(self._outdated(), _AT_ONCE)]:
                await self._requeue(facts)

    def _outdated(self) -> Iterator[PodFacts]:
        """Pods whose refusal is no longer true; each is named once, until it is refused again."""
        judged: dict[_Alike, bool] = {}
        for uid, refusal in [*self._refused.items()]:
            facts = self._state.pod(uid)
            if facts is None or facts.node:
                del self._refused[uid]
            elif self._fits_now(uid, refusal, judged):
                del self._refused[uid]
                yield facts

    def _fits_now(self, uid: str, refusal: _Refusal, judged: dict[_Alike, bool]) -> bool:
        changes, facts = self._state.changes, refusal.facts
        changed = changes.since(refusal.then)
        self._refused[uid] = _Refusal(facts, changes.now, self._budgets.changes)
        if changed is None:
            return True  # too long ago to tell
        if self._budgets.changed_since(refusal.budgets_then, facts.namespace):
            return self._fits_anywhere(facts, judged)
        return bool(changed) and self._fits_on(changed, facts)

    def _fits_anywhere(self, facts: PodFacts, judged: dict[_Alike, bool]) -> bool:
        """Returns whether the pod fits on any node; equal pods are judged once, since many are refused by one
        budget.
        """
        alike = facts.namespace, facts.demand
        if alike not in judged:
            judged[alike] = self._fits_on(self._state.nodes(), facts)
        return judged[alike]

    def _fits_on(self, names: Iterable[str], facts: PodFacts) -> bool:
        fitting = self._answers.feasible(facts.demand).by_reason([*names]).get(FITS, ())
        try:
            limits = self._budgets.limits(facts)
        except NoBudgetError:
            return False
        rooms = self._state.room
        return any(not limits.why_not(self._state.kind(each), facts.demand, partial(rooms, each)) for each in fitting)

    async def _requeue(self, facts: PodFacts) -> None:
        """Changes the pod so that the scheduler retries it; a pod that is gone or changes at this moment needs none
        of it.
        """
        now = datetime.now(UTC).isoformat()
        metadata = {"uid": facts.uid, "annotations": {names.RECONSIDER: now}}
        try:
            await self._calls.patch(pod_path(facts), msgspec.json.encode({"metadata": metadata}))
        except NoAnswerError:
            self.add(facts)
