"""Reserves the charge of a new pod in every GpuQuota of its namespace, or refuses the pod.

Invariant: a pod is admitted only with a reservation in every ledger; a refused pod keeps none that this call made.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from halfcard.problems import MAX_MESSAGE_BYTES, clipped
from halfcard.quota.budget_messages import exceeded
from halfcard.quota.ledger import Amounts, Busy, Full, Ledger, Shortage, shortages
from kube.ledger.joint_reservation import LedgerCharge, NotReservedError, reserve_in_all

from ..verdict import NoRoom, Verdict
from ..writes import PodCreate, Write
from .budget_ledgers import BudgetLedgers, ReservationRequest
from .refusal_events import Refused

_AGAIN_S: Final = 1
_UNSEEN: Final = NoRoom("Halfcard has just begun and does not know the quotas yet: try again", _AGAIN_S)


class BudgetReservation:
    """Reserves for new pods; `refused` is called for pods that an exhausted budget refused."""

    def __init__(self, desks: BudgetLedgers, refused: Refused) -> None:
        self._desks = desks
        self._refused = refused

    async def __call__(self, write: Write, verdict: Verdict) -> Verdict:
        if not isinstance(write, PodCreate):
            return verdict
        if not self._desks.ready:
            return verdict._replace(no_room=_UNSEEN)
        if not self._desks.concern(write.namespace):
            return verdict
        meta = write.stored.meta
        wanted = self._desks.wanted(write.pod, write.namespace, meta.title)
        if write.pod.waits_for_quota:
            return verdict._replace(no_room=self._never(wanted))
        if write.request.dry_run:
            return verdict._replace(no_room=await _ask(wanted))
        why = await _reserve(wanted, meta.uid)
        if why is not None and why.budget is not None:
            self._refused(why.budget, write.namespace, meta, why.message)
        return verdict._replace(no_room=why)

    def _never(self, wanted: Sequence[ReservationRequest]) -> NoRoom | None:
        """Refuses a gated pod that can never fit; otherwise nothing is reserved while it waits."""
        empty = [(each, shortages(Ledger(self._desks.reach(each.budget)), each.entry.cost)) for each in wanted]
        refused = [(each, Full(short)) for each, short in empty if short]
        return _full(refused) if refused else None


async def _reserve(wanted: Sequence[ReservationRequest], uid: str) -> NoRoom | None:
    charges = [LedgerCharge(each.desk, each.entry, each.budget.uid, partial(_check_somewhere, each)) for each in wanted]
    try:
        await reserve_in_all(uid, charges)
    except NotReservedError as refusal:
        return _no_room(wanted[refusal.at :], refusal.why)
    return None


async def _ask(wanted: Sequence[ReservationRequest]) -> NoRoom | None:
    """Returns the answer without reserving anything, for dry runs."""
    for at, each in enumerate(wanted):
        try:
            await _check_somewhere(each)
            await each.desk.check(each.entry, each.budget.uid)
        except (Full, Busy) as why:
            return _no_room(wanted[at:], why)
    return None


async def _check_somewhere(wanted: ReservationRequest) -> None:
    """Checks that at least one kind of node has room; amounts by node are reserved only when the pod gets its node.

    Raises Full where no kind of node has room, and Busy where that is unknown.
    """
    ledger = wanted.desk.known()
    if not wanted.somewhere or (ledger is not None and not _nowhere(ledger, wanted.somewhere)):
        return
    if short := _nowhere(await wanted.desk.now(), wanted.somewhere):
        raise Full(short)


def _nowhere(ledger: Ledger, costs: Sequence[Amounts]) -> Sequence[Shortage]:
    """Returns the shortages of the kind of node that lacks least, preferably one with a limit above 0; empty where
    one has room.
    """
    short = [shortages(ledger, cost) for cost in costs]
    return min(short, key=_distance, default=())


def _distance(short: Sequence[Shortage]) -> tuple[bool, int]:
    return any(each.hard == 0 for each in short), sum(each.missing for each in short)


def _no_room(wanted: Sequence[ReservationRequest], why: Full | Busy) -> NoRoom:
    """Words the refusal of the first ledger, with what is missing in those after it."""
    first, *others = wanted
    return _busy(first, why) if isinstance(why, Busy) else _full([(first, why), *_also_short(others)])


def _also_short(wanted: Sequence[ReservationRequest]) -> list[tuple[ReservationRequest, Full]]:
    found = [(each, each.desk.shortages(each.entry)) for each in wanted]
    return [(each, Full(shortages)) for each, shortages in found if shortages]


def _full(refused: Sequence[tuple[ReservationRequest, Full]]) -> NoRoom:
    told = " | ".join(exceeded(each.budget.title, full.shortages) for each, full in refused)
    return NoRoom(clipped(told, MAX_MESSAGE_BYTES), budget=refused[0][0].budget)


def _busy(each: ReservationRequest, busy: Busy) -> NoRoom:
    what = f"{each.budget.kind} {each.budget.title} cannot be asked right now: {busy}; try again"
    return NoRoom(clipped(what, MAX_MESSAGE_BYTES), _AGAIN_S)
