"""Removes the scheduling gates of waiting pods, in order, when there is room.

Invariant: a gate is removed after the pod's charge is reserved in every ledger, and only while this replica leads.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import msgspec

from halfcard import names
from halfcard.api_paths import path_of_pod
from halfcard.quota.budget_messages import waits_for
from halfcard.quota.budgets import Budget
from halfcard.quota.ledger import Entry
from halfcard.quota.lending import Terms
from halfcard.quota.queueing import BlockedPod, WaitingPod, queue
from halfcard.quota.turns import Turn
from kube.api.calls import ApiCalls, NoAnswerError
from kube.ledger.joint_reservation import LedgerCharge, NotReservedError, reserve_in_all
from kube.ledger.ledger_writer import LedgerWriter
from serving.log import Log

from ..charged_pods import ChargedPod, ChargedPods
from ..ledgers_controller import LedgersController
from ..loans import Loans
from ..reporting.queue_rows import QueueRow, Queues, queues
from .impossible_pods import ImpossiblePods
from .waiting_reports import WaitingReason, WaitingReports

_REST_S: Final = 0.2
_AGAIN_S: Final = 2.0
"""The pause before a retry without any change, because an answer may have been lost."""

_AT_ONCE: Final = 32


@dataclass(slots=True)
class GateAdmission:
    """Created on the event loop.

    Attributes:
        budgets_of: the budgets of a namespace, in the order in which ledgers are written.
        writer_of: the writer of a ledger.
        queues: who waits in which ledger, as last decided.
    """

    calls: ApiCalls
    pods: ChargedPods
    budgets_of: Callable[[str], Sequence[Budget]]
    ledgers: LedgersController
    writer_of: Callable[[Budget], LedgerWriter]
    impossible: ImpossiblePods
    reports: WaitingReports
    may_decide: Callable[[], bool]
    log: Log
    queues: Queues = field(default_factory=dict)
    _loans: Loans = field(init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._loans = Loans(self.ledgers)

    def trigger(self) -> None:
        """Pods, quotas or ledgers have changed."""
        self._changed.set()

    async def run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN_S):
                    await self._changed.wait()
            self._changed.clear()
            if self.may_decide():
                await self._round()
            await asyncio.sleep(_REST_S)

    async def _round(self) -> None:
        pods, budgets = self.pods.waiting(), self._budgets()
        if not pods and not self._loans.exist:
            self.reports.update({})
            self.queues = {}
            return
        await self._loans.settle()
        outside = self._outside(pods, budgets)
        inside = {uid: pod for uid, pod in pods.items() if uid not in outside}
        waiting = _waiting(inside, budgets, self.pods.turns())
        found = queue(waiting, self.ledgers.ledgers(), self._terms())
        blocked = {each.waiting.uid: _reason(each, budgets[each.waiting.namespace]) for each in found.blocked}
        self.reports.update(blocked | outside)
        self.queues = queues(found.blocked, _rows(outside.values(), budgets))
        next_ones = found.admissible[:_AT_ONCE]
        try:
            await self._loans.give_back(found.unused)
            await self._loans.settle()
            await self._loans.make(found.loans)
            await asyncio.gather(*[self._admit(each, pods[each.uid], budgets[each.namespace]) for each in next_ones])
        except NoAnswerError as error:
            self.log.warning("gates not removed", why=str(error))

    def _outside(
        self, pods: Mapping[str, ChargedPod], budgets: Mapping[str, Sequence[Budget]]
    ) -> dict[str, WaitingReason]:
        """Returns the pods that stay outside of the queue, and why."""
        found = {uid: self.impossible.why(pod, budgets[pod.namespace]) for uid, pod in pods.items()}
        return {uid: WaitingReason(pods[uid].namespace, pods[uid].name, why) for uid, why in found.items() if why}

    def waits(self) -> Counter[str]:
        """Counts the waiting pods of each ledger."""
        budgets = self._budgets()
        return Counter(each.ledger for pod in self.pods.waiting().values() for each in budgets[pod.namespace])

    def waits_by_namespace(self) -> Counter[str]:
        return Counter(pod.namespace for pod in self.pods.waiting().values())

    def _budgets(self) -> dict[str, Sequence[Budget]]:
        return {pod.namespace: self.budgets_of(pod.namespace) for pod in self.pods.waiting().values()}

    def _terms(self) -> dict[str, Terms]:
        return {
            name: terms for name, controller in self.ledgers.controllers.items() if (terms := controller.budget.terms)
        }

    async def _admit(self, waiting: WaitingPod, pod: ChargedPod, budgets: Sequence[Budget]) -> None:
        charges = [LedgerCharge(self.writer_of(each), waiting.entries[each.ledger], each.uid) for each in budgets]
        with suppress(NotReservedError):
            await reserve_in_all(waiting.uid, charges)
            if self.may_decide():
                await self._remove_gate(waiting, pod)

    async def _remove_gate(self, waiting: WaitingPod, pod: ChargedPod) -> None:
        """Removes the gate; after a failure the next round finds the reservation and tries again."""
        path = path_of_pod(waiting.namespace, waiting.pod)
        answer = await self.calls.patch(path, gate_removal(waiting.uid, pod.version, pod.gates))
        if answer.status not in (HTTPStatus.OK, HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            why = answer.refusal()
            self.log.warning("gate not removed", pod=f"{waiting.namespace}/{waiting.pod}", why=why)


def _waiting(
    pods: Mapping[str, ChargedPod], budgets: Mapping[str, Sequence[Budget]], turns: Mapping[str, Turn]
) -> Iterator[WaitingPod]:
    for uid, pod in pods.items():
        entries = {
            budget.ledger: Entry(pod.namespace, pod.name, budget.counted(pod.charge, pod.labels))
            for budget in budgets[pod.namespace]
        }
        turn = turns.get(uid, Turn(pod.created))
        yield WaitingPod(uid, pod.namespace, pod.name, pod.priority, turn, entries)


def _reason(blocked: BlockedPod, budgets: Sequence[Budget]) -> WaitingReason:
    title = next(each.title for each in budgets if each.ledger == blocked.ledger)
    return WaitingReason(blocked.waiting.namespace, blocked.waiting.pod, waits_for(blocked, title))


def _rows(outside: Iterable[WaitingReason], budgets: Mapping[str, Sequence[Budget]]) -> Iterator[tuple[str, QueueRow]]:
    for each in outside:
        for budget in budgets[each.namespace]:
            yield budget.ledger, QueueRow(f"{each.namespace}/{each.pod}", why=each.message)


def gate_removal(uid: str, version: str, gates: Iterable[str]) -> bytes:
    """Returns a patch of exactly this version of a pod; gates of others stay closed."""
    left = [{"name": gate} for gate in gates if gate != names.QUOTA_GATE]
    metadata = {"uid": uid, "resourceVersion": version}
    return msgspec.json.encode({"metadata": metadata, "spec": {"schedulingGates": left or None}})
