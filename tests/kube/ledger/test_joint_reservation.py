"""Reserving in several ledgers: in all or in none, also where a ledger refuses, fails or the caller goes away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

import pytest

from halfcard.quota.ledger import Busy, Entry, Exceeded, Ledger, StoredPods, commit, reserve, take_over
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
    checks: dict[str, Callable[[], Awaitable[None]]] = field(default_factory=dict)

    def reserve(self, *, is_unique: bool = False) -> Awaitable[Reservation]:
        charges = [LedgerCharge(self._writer(name), ENTRY, OF) for name in NAMES]
        checked = [
            charge._replace(check=self.checks.get(name, charge.check))
            for name, charge in zip(NAMES, charges, strict=True)
        ]
        return reserve_in_all("u", checked, is_unique=is_unique)

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


async def test_a_check_that_refuses_is_a_refusal_of_its_ledger(scene: Scene) -> None:
    async def refuse() -> None:
        raise Busy("no answer")

    scene.checks["b"] = refuse
    with pytest.raises(NotReservedError) as refusal:
        await scene.reserve()
    assert refusal.value.at == 1 and isinstance(refusal.value.why, Busy)
    await until(lambda: scene.reserved_in() == [])


async def test_an_error_in_the_middle_releases_what_was_reserved_before(scene: Scene) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    scene.checks["c"] = fail
    with pytest.raises(ZeroDivisionError):
        await scene.reserve()
    await until(lambda: scene.reserved_in() == [])


async def test_a_cancelled_call_releases_what_was_reserved_before(scene: Scene) -> None:
    reached = asyncio.Event()

    async def wait() -> None:
        reached.set()
        await asyncio.Event().wait()

    scene.checks["c"] = wait
    call = asyncio.ensure_future(scene.reserve())
    await reached.wait()
    assert scene.reserved_in() == ["a", "b"]
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await until(lambda: scene.reserved_in() == [])
