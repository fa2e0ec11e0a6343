"""Reserves the charge of a new pod in every GpuQuota of its namespace, or refuses the pod.

Invariant: a call either admits its pod, with a reservation in every ledger, or releases all that it reserved. A pod is
refused for good only where committed amounts leave too little; while only reservations do, the call waits.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from math import ceil
from typing import Final

from halfcard.problems import MAX_MESSAGE_BYTES, clipped
from halfcard.quota.budget_messages import contended, exceeded, uncountable, uncounted_devices
from halfcard.quota.ledger import (
    Amounts,
    Busy,
    Contended,
    Crowded,
    Exceeded,
    Ledger,
    Shortage,
    create_reservation,
    lasting_shortages,
    shortages,
)
from kube.ledger.joint_reservation import LedgerCharge, NotReservedError, reserve_in_all

from ..verdict import NoRoom, Verdict
from ..writes import PodCreate, Write
from .budget_ledgers import BudgetLedgers, ReservationRequest
from .refusal_events import Refused

_RETRY_S: Final = 1
_NOT_READY: Final = NoRoom("Halfcard has just started and does not know all quotas yet; try again", _RETRY_S)


class BudgetReservation:
    """Reserves for new pods; `refused` is called for pods that an exhausted budget refused."""

    def __init__(self, ledgers: BudgetLedgers, refused: Refused) -> None:
        self._ledgers = ledgers
        self._refused = refused

    async def __call__(self, write: Write, verdict: Verdict, until: float) -> Verdict:
        if not isinstance(write, PodCreate):
            return verdict
        if not self._ledgers.ready:
            return verdict._replace(no_room=_NOT_READY)
        if not self._ledgers.has_budgets(write.namespace):
            return verdict
        meta = write.stored.meta
        requests = self._ledgers.requests_for(write.pod, write.namespace, meta.title)
        never = self._uncounted_devices(write) or _uncountable(requests)
        if write.pod.waits_for_quota:
            return verdict._replace(no_room=never or self._never_fits(requests))
        if write.request.dry_run:
            return verdict._replace(no_room=never or await _dry_run(requests))
        why = never or await _reserve(requests, meta.uid, until)
        if why is not None and why.retry_s and meta.has_controller:
            why = why._replace(retry_s=_RETRY_S)  # a worker of the controller does nothing else until then
        if why is not None and why.budget is not None:
            self._refused(why.budget, write.namespace, meta, why.message)
        return verdict._replace(no_room=why)

    def _uncounted_devices(self, write: PodCreate) -> NoRoom | None:
        found = self._ledgers.uncounted_devices(write.pod, write.namespace)
        if found is None:
            return None
        budget, field = found
        return NoRoom(clipped(uncounted_devices(budget.title, field), MAX_MESSAGE_BYTES), budget=budget)

    def _never_fits(self, requests: Sequence[ReservationRequest]) -> NoRoom | None:
        """Refuses a gated pod that can never fit; otherwise nothing is reserved while it waits."""
        empty = [(each, shortages(Ledger(self._ledgers.maximum(each.budget)), each.entry.charge)) for each in requests]
        refused = [(each, Exceeded(short)) for each, short in empty if short]
        return _full(refused) if refused else None


def _uncountable(requests: Sequence[ReservationRequest]) -> NoRoom | None:
    """Refuses a pod of whose use a budget would count too little."""
    found = [(each.budget, what) for each in requests for what in each.unknown]
    text = " | ".join(uncountable(budget.title, what) for budget, what in found)
    return NoRoom(clipped(text, MAX_MESSAGE_BYTES), budget=found[0][0]) if found else None


async def _reserve(requests: Sequence[ReservationRequest], uid: str, until: float) -> NoRoom | None:
    name = create_reservation(uid, secrets.token_hex(4))
    charges = [LedgerCharge(each.writer, each.entry, each.budget.uid, partial(_check_nodes, each)) for each in requests]
    try:
        await reserve_in_all(name, charges, is_unique=True, until=until)
    except NotReservedError as refusal:
        return _no_room(requests[refusal.at :], refusal.why)
    return None


async def _dry_run(requests: Sequence[ReservationRequest]) -> NoRoom | None:
    """Returns the answer without reserving anything, for dry runs."""
    for at, each in enumerate(requests):
        try:
            await _check_nodes(each)
            await each.writer.check(each.entry, each.budget.uid)
        except (Exceeded, Busy) as why:
            return _no_room(requests[at:], why)
    return None


async def _check_nodes(request: ReservationRequest) -> None:
    """Checks that at least one kind of node has room; amounts by node are reserved only when the pod gets its node.

    Raises Exceeded where no kind of node has room, and Busy where that is unknown.
    """
    ledger = request.writer.known()
    if not request.by_node or (ledger is not None and not _least_short(ledger, request.by_node)):
        return
    if short := _least_short(await request.writer.read(), request.by_node):
        raise Exceeded(short)


def _least_short(ledger: Ledger, costs: Sequence[Amounts]) -> Sequence[Shortage]:
    """Returns the lasting shortages of the kind of node that lacks least, preferably one with a limit above 0; empty
    where one may have room.
    """
    short = [lasting_shortages(ledger, cost) for cost in costs]
    return min(short, key=_distance, default=())


def _distance(short: Sequence[Shortage]) -> tuple[bool, int]:
    return any(each.hard == 0 for each in short), sum(each.missing for each in short)


def _no_room(requests: Sequence[ReservationRequest], why: Exceeded | Busy) -> NoRoom:
    """Returns the refusal of the first ledger; if it is final, together with the shortages of the ledgers after it."""
    first, *others = requests
    if isinstance(why, Busy | Contended):
        return _try_again(first, why)
    return _full([(first, why), *_also_short(others)])


def _also_short(requests: Sequence[ReservationRequest]) -> list[tuple[ReservationRequest, Exceeded]]:
    found = [(each, each.writer.last_shortages(each.entry)) for each in requests]
    return [(each, Exceeded(shortages)) for each, shortages in found if shortages]


def _full(refused: Sequence[tuple[ReservationRequest, Exceeded]]) -> NoRoom:
    text = " | ".join(exceeded(each.budget.title, full.shortages) for each, full in refused)
    return NoRoom(clipped(text, MAX_MESSAGE_BYTES), budget=refused[0][0].budget)


def _try_again(each: ReservationRequest, why: Contended | Busy) -> NoRoom:
    retry_s = ceil(each.writer.retry_s(each.entry)) if isinstance(why, Contended | Crowded) else _RETRY_S
    if isinstance(why, Contended):
        text = contended(each.budget.title, why.shortages, retry_s)
    else:
        text = f"{each.budget.kind} {each.budget.title} cannot be checked now: {why}; try again"
    return NoRoom(clipped(text, MAX_MESSAGE_BYTES), retry_s)
