"""Requeues unschedulable pods that fit now: makes kube-scheduler try them again.

kube-scheduler retries an unschedulable pod when the cluster changes. If it sees a change earlier than our watches, it
tries the pod at once, is refused by the old state, and tries again only after five minutes. It also retries a pod that
changes itself, so a pod that fits now gets an annotation.
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
"""Long enough for the scheduler to retry the pod by itself."""
_AT_ONCE: Final = 20
"""Pods of one round; the next round begins with the others."""
_MAX_WAITING: Final = 20_000


_PodKind = tuple[str, Demand]
"""Namespace and demand: pods that agree in both get the same answer."""


class _Refusal(NamedTuple):
    """A refused pod, and the positions in the changes of state and budgets at that time."""

    facts: PodFacts
    state_changes: int
    budget_changes: int


class Requeue:
    def __init__(self, state: State, answers: AnswerCache, calls: ApiCalls, budgets: QuotaReservations) -> None:
        self._state = state
        self._answers = answers
        self._calls = calls
        self._budgets = budgets
        self._refused: OrderedDict[str, _Refusal] = OrderedDict()

    def add(self, facts: PodFacts) -> None:
        """Adds a pod that fits on no node."""
        self._refused[facts.uid] = _Refusal(facts, self._state.changes.now, self._budgets.changes)
        self._refused.move_to_end(facts.uid)
        if len(self._refused) > _MAX_WAITING:
            self._refused.popitem(last=False)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_PAUSE_S)
            for facts in [*islice(self._outdated(), _AT_ONCE)]:
                await self._requeue(facts)

    def _outdated(self) -> Iterator[PodFacts]:
        """Yields pods that fit now; each once, until it is refused again."""
        judged: dict[_PodKind, bool] = {}
        for uid, refusal in [*self._refused.items()]:
            facts = self._state.pod(uid)
            if facts is None or facts.node:
                del self._refused[uid]
            elif self._fits_now(uid, refusal, judged):
                del self._refused[uid]
                yield facts

    def _fits_now(self, uid: str, refusal: _Refusal, judged: dict[_PodKind, bool]) -> bool:
        changes, facts = self._state.changes, refusal.facts
        changed = changes.since(refusal.state_changes)
        self._refused[uid] = _Refusal(facts, changes.now, self._budgets.changes)
        if changed is None:
            return True  # the log of changes does not reach back so far
        if self._budgets.changed_since(refusal.budget_changes, facts.namespace):
            return self._fits_anywhere(facts, judged)
        return bool(changed) and self._fits_on(changed, facts)

    def _fits_anywhere(self, facts: PodFacts, judged: dict[_PodKind, bool]) -> bool:
        """Returns whether the pod fits on any node; judges equal pods once, because one budget refuses many."""
        kind = facts.namespace, facts.demand
        if kind not in judged:
            judged[kind] = self._fits_on(self._state.nodes(), facts)
        return judged[kind]

    def _fits_on(self, names: Iterable[str], facts: PodFacts) -> bool:
        fitting = self._answers.feasible(facts.demand).by_reason([*names]).get(FITS, ())
        try:
            limits = self._budgets.limits(facts)
        except NoBudgetError:
            return False
        rooms = self._state.room
        return any(not limits.why_not(self._state.kind(each), facts.demand, partial(rooms, each)) for each in fitting)

    async def _requeue(self, facts: PodFacts) -> None:
        """Changes the pod so that the scheduler retries it; a pod that is deleted or just changed needs no retry."""
        now = datetime.now(UTC).isoformat()
        metadata = {"uid": facts.uid, "annotations": {names.RECONSIDER: now}}
        try:
            await self._calls.patch(pod_path(facts), msgspec.json.encode({"metadata": metadata}))
        except NoAnswerError:
            self.add(facts)
