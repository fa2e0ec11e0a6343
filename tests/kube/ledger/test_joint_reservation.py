"""Reserving in several ledgers: in all or in none, also where a ledger refuses, fails or the caller goes away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, cast

import pytest

from halfcard.quota.ledger import Busy, Contended, Entry, Exceeded, Ledger, StoredPods, commit, reserve, take_over
from kube.api.calls import ApiCalls
from kube.ledger.joint_reservation import LedgerCharge, NotReservedError, Reservation, reserve_in_all
from kube.ledger.ledger_store import LedgerStore
from kube.ledger.ledger_writer import LedgerWriter
from tests.kube.ledger_server import NAMESPACE, LedgerServer, serving_calls
from tests.waiting import until

OF: Final = "uid-of-the-quota"
NAMES: Final = ("a", "b", "c")
READY: Final = commit(take_over(Ledger({"cores": 100}), OF), 1, StoredPods({}, {}))
ENTRY: Final = Entry("team", "p", {"cores": 60})
WITH_U: Final = reserve(READY, "u", ENTRY)
WITH_ANOTHER: Final = reserve(READY, "other", ENTRY)  # leaves too little for ENTRY


@dataclass
class Scene:
    server: LedgerServer
    calls: ApiCalls
    entries: dict[str, Entry] = field(default_factory=dict)
    checks: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)

    def reserve(self, *, is_unique: bool = False, patience_s: float | None = None) -> Awaitable[Reservation]:
        charges = [LedgerCharge(self._writer(name), self.entries.get(name, ENTRY), OF) for name in NAMES]
        checked = [
            charge._replace(check=self.checks.get(name, charge.check))
            for name, charge in zip(NAMES, charges, strict=True)
        ]
        until = None if patience_s is None else asyncio.get_running_loop().time() + patience_s
        return reserve_in_all("u", checked, is_unique=is_unique, until=until)

    def _writer(self, name: str) -> LedgerWriter:
        return LedgerWriter(LedgerStore(self.calls, NAMESPACE), name, time.monotonic)

    def reserved_in(self) -> list[str]:
        return [name for name in NAMES if "u" in self.server.ledger(name).reservations]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with serving_calls() as (server, calls):
        for name in NAMES:
            server.put(name, READY)
        yield Scene(server, calls)


async def test_a_charge_is_reserved_in_every_ledger_and_released_in_every_ledger(scene: Scene) -> None:
    reservation = await scene.reserve()
    assert scene.reserved_in() == ["a", "b", "c"]
    reservation.release()
    await until(lambda: scene.reserved_in() == [])


async def test_a_refusal_in_the_middle_releases_what_was_reserved_before(scene: Scene) -> None:
    scene.server.put("b", WITH_ANOTHER)
    with pytest.raises(NotReservedError) as refusal:
        await scene.reserve()
    assert refusal.value.at == 1 and isinstance(refusal.value.why, Exceeded)
    await until(lambda: scene.reserved_in() == [])


@pytest.mark.parametrize(("is_unique", "left"), [(False, ["a"]), (True, [])])
async def test_a_reservation_that_another_call_may_have_made_is_not_released(
    scene: Scene,
    is_unique: bool,  # noqa: FBT001  (a row)
    left: list[str],
) -> None:
    scene.server.put("a", WITH_U)
    scene.server.put("c", WITH_ANOTHER)
    with pytest.raises(NotReservedError):
        await scene.reserve(is_unique=is_unique)
    await until(lambda: scene.reserved_in() == left)


async def test_a_check_that_refuses_is_a_refusal_of_its_ledger_and_nothing_is_written_before(scene: Scene) -> None:
    async def refuse() -> None:
        raise Busy("no answer")

    scene.checks["b"] = refuse
    with pytest.raises(NotReservedError) as refusal:
        await scene.reserve()
    assert refusal.value.at == 1 and isinstance(refusal.value.why, Busy)
    assert scene.server.writes() == 0


async def test_a_bug_in_the_middle_releases_what_was_reserved_before(scene: Scene) -> None:
    scene.entries["c"] = cast(Entry, None)
    with pytest.raises(AttributeError):
        await scene.reserve()
    await until(lambda: len(scene.server.history("b")) == 3 and scene.reserved_in() == [])


async def test_a_cancelled_call_releases_what_was_reserved_before(scene: Scene) -> None:
    scene.server.put("c", WITH_ANOTHER)
    call = asyncio.ensure_future(scene.reserve(is_unique=True, patience_s=60))
    await until(lambda: scene.reserved_in() == ["a", "b"])
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: scene.reserved_in() == [])


async def test_a_call_that_is_cancelled_during_a_write_releases_that_reservation_too(scene: Scene) -> None:
    scene.server.faults = ["held"]
    call = asyncio.ensure_future(scene.reserve(is_unique=True))
    await asyncio.to_thread(scene.server.held.wait, 10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    scene.server.release.set()
    await until(lambda: len(scene.server.history("a")) == 3 and scene.reserved_in() == [])


async def test_ledgers_after_the_first_are_asked_at_once(scene: Scene) -> None:
    scene.server.faults = [None, "held"]
    call = asyncio.ensure_future(scene.reserve())
    await until(lambda: len(scene.reserved_in()) == 2)
    assert scene.reserved_in() in (["a", "b"], ["a", "c"]) and not call.done()
    scene.server.release.set()
    await call


async def test_a_call_that_waits_holds_nothing_in_the_ledgers_after(scene: Scene) -> None:
    scene.server.put("b", WITH_ANOTHER)
    call = asyncio.ensure_future(scene.reserve(patience_s=60))
    await until(lambda: len(scene.server.history("c")) == 3, what="a reservation in c and its release")
    assert scene.reserved_in() == ["a"]
    scene.server.put("b", READY)
    await call
    assert scene.reserved_in() == ["a", "b", "c"]


async def test_a_call_waits_for_other_reservations_until_its_deadline_and_then_releases_its_own(scene: Scene) -> None:
    scene.server.put("c", WITH_ANOTHER)
    with pytest.raises(NotReservedError) as refusal:
        await scene.reserve(patience_s=0.2)
    assert refusal.value.at == 2 and isinstance(refusal.value.why, Contended)
    await until(lambda: scene.reserved_in() == [])
