"""The results of one write for several calls, as plain data."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from halfcard.quota.ledger import Contended, Entry, Ledger, StoredPods, Uncounted, commit, reserve
from kube.ledger.reservation_attempts import ReservationAttempt, apply

READY: Final = commit(Ledger({"cores": 100}), 0, StoredPods({}, {}))
ENTRY: Final = Entry("team", "p", {"cores": 60})


def attempt(name: str, *, quota_uid: str = "", waits: bool = True) -> ReservationAttempt:
    outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    return ReservationAttempt(name, ENTRY, quota_uid, 0.0, waits, outcome)


async def test_what_is_released_is_free_for_the_calls_of_the_same_write() -> None:
    results = apply(reserve(READY, "u", ENTRY), {"u"}, [attempt("v")], 100)
    assert results.ledger.reservations.keys() == {"v"}


async def test_a_call_that_was_cancelled_meanwhile_reserves_nothing() -> None:
    cancelled = attempt("u")
    cancelled.outcome.cancel()
    results = apply(READY, (), [cancelled, attempt("v")], 100)
    assert results.ledger.reservations.keys() == {"v"}
    results.answer()


async def test_a_call_that_waits_stays_unanswered_and_knows_why() -> None:
    waiting, hurried, foreign = attempt("v"), attempt("w", waits=False), attempt("x", quota_uid="another")
    apply(reserve(READY, "u", ENTRY), (), [waiting, hurried, foreign], 100).answer()
    assert not waiting.outcome.done() and isinstance(waiting.obstacle, Contended)
    assert not foreign.outcome.done() and isinstance(foreign.obstacle, Uncounted)
    with pytest.raises(Contended):
        hurried.outcome.result()
