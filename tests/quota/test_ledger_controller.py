"""One ledger and its controller, over a real connection: epochs, commits, reservations whose pod never comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from halfcard.quota.budgets import Budget, deleted_budget
from halfcard.quota.gpu_quota import Exemption
from halfcard.quota.ledger import Entry, Ledger, LostLeadership, reserve, used
from halfcard.quota.reservation_expiry import APART_S, OLD_S
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import LedgerError, LedgerStore
from quota.ledger_controller import LedgerController
from quota.usage_index import CountedPod
from tests.kube.ledger_server import NAMESPACE, LedgerServer, serving_calls

NAME: Final = "gpuquota.team.gpu"
BUDGET: Final[Budget] = deleted_budget(NAME)._replace(uid="q", hard={"cores": 100})


def entry(cores: int = 10, pod: str = "p") -> Entry:
    return Entry("team", pod, {"cores": cores})


@dataclass
class Place:
    server: LedgerServer
    calls: ApiCalls
    clock: float = 0.0
    stored: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)

    def keeper(self) -> LedgerController:
        return LedgerController(LedgerStore(self.calls, NAMESPACE), BUDGET)

    async def leading(self) -> LedgerController:
        keeper = self.keeper()
        await keeper.take_over()
        await self.commit(keeper, {})
        return keeper

    async def commit(self, keeper: LedgerController, live: Mapping[str, Entry]) -> None:
        """With these pods stored and no others."""
        for uid in {*keeper.usage.entries, *live}:
            keeper.usage.put(uid, CountedPod(live[uid]) if uid in live else None)
        await keeper.commit(self.has_ended)

    def has_ended(self, uid: str) -> bool:
        return uid in self.ended

    async def is_stored(self, _entry: Entry, uid: str) -> bool:
        return uid in self.stored

    async def pass_time(self, keeper: LedgerController, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.clock += 1.0
            await keeper.expire(lambda: self.clock, self.is_stored)

    def ledger(self) -> Ledger:
        return self.server.ledger(NAME)

    def reserve(self, *uids: str) -> None:
        ledger = self.ledger()
        for uid in uids:
            ledger = reserve(ledger, uid, entry())
        self.server.put(NAME, ledger)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with serving_calls() as (server, calls):
        yield Place(server, calls)


async def test_a_new_ledger_is_ready_once_all_pods_are_counted(place: Place) -> None:
    keeper = place.keeper()
    await keeper.take_over()
    assert (place.ledger().is_ready, place.ledger().quota_uid, place.ledger().hard) == (False, "q", {"cores": 100})
    await place.commit(keeper, {"u": entry(70)})
    assert place.ledger().is_ready and used(place.ledger()) == {"cores": 70}
    assert place.ledger().late == frozenset()


async def test_whoever_takes_over_deposes_the_one_before(place: Place) -> None:
    before = await place.leading()
    after = await place.leading()
    with pytest.raises(LostLeadership):
        await place.commit(before, {"u": entry()})
    await place.commit(after, {"u": entry()})
    assert used(place.ledger()) == {"cores": 10}


async def test_a_commit_keeps_what_was_reserved_meanwhile(place: Place) -> None:
    keeper = await place.leading()
    place.reserve("u", "v")
    await place.commit(keeper, {"u": entry()})
    assert place.ledger().reservations.keys() == {"v"} and used(place.ledger()) == {"cores": 20}


async def test_the_reservation_of_a_pod_that_came_and_went_is_settled_at_once(place: Place) -> None:
    keeper = await place.leading()
    place.reserve("u")
    place.ended.add("u")
    await place.pass_time(keeper, 1)
    assert keeper.is_due(place.has_ended)
    await place.commit(keeper, {})
    assert used(place.ledger()) == {}


async def test_a_pod_that_came_without_a_reservation_is_late_where_there_is_too_little(place: Place) -> None:
    keeper = await place.leading()
    await place.commit(keeper, {"u": entry(90)})
    await place.commit(keeper, {"u": entry(90), "v": entry(20)})
    assert place.ledger().late == {"v"}


async def test_a_reservation_whose_pod_never_comes_expires_after_its_time_and_two_looks(place: Place) -> None:
    keeper = await place.leading()
    place.reserve("u", "slow")
    place.stored.add("slow")
    await place.pass_time(keeper, OLD_S + APART_S)
    assert place.ledger().reservations.keys() == {"u", "slow"}
    await place.pass_time(keeper, 3)
    assert place.ledger().reservations.keys() == {"slow"}


async def test_while_nobody_answers_nothing_grows_old(place: Place) -> None:
    keeper = await place.leading()
    place.reserve("u")
    await place.pass_time(keeper, OLD_S - 5)
    place.clock += 3600.0
    await place.pass_time(keeper, 3)
    assert place.ledger().reservations.keys() == {"u"}


async def test_what_is_allowed_follows_the_quota(place: Place) -> None:
    keeper = await place.leading()
    keeper.budget = BUDGET._replace(hard={"cores": 5})
    await place.commit(keeper, {})
    assert place.ledger().hard == {"cores": 5}


async def test_it_is_told_once_that_there_is_more_room(place: Place) -> None:
    keeper = await place.leading()
    assert keeper.has_gained_room() and not keeper.has_gained_room()
    await place.commit(keeper, {"u": entry(100)})
    assert not keeper.has_gained_room()
    await place.commit(keeper, {"u": entry(90)})
    assert keeper.has_gained_room()


async def test_a_ledger_that_somebody_deleted_is_begun_anew(place: Place) -> None:
    keeper = await place.leading()
    place.server.drop(NAME)
    with pytest.raises(LostLeadership):
        await place.commit(keeper, {"u": entry()})
    await keeper.take_over()
    assert not place.ledger().is_ready


async def test_the_ledger_of_a_quota_that_is_gone_waits_for_its_reservations(place: Place) -> None:
    keeper = await place.leading()
    place.reserve("u")
    await place.pass_time(keeper, 1)
    await keeper.delete_if_unused()
    assert place.server.there() == {NAME}
    await place.pass_time(keeper, OLD_S + APART_S + 3)
    await keeper.delete_if_unused()
    assert place.server.there() == set()


async def test_what_is_no_ledger_is_named_with_what_to_do(place: Place) -> None:
    place.server.put_text(NAME, "scribble")
    with pytest.raises(LedgerError, match=f"{NAME} is not a valid ledger: .* delete it, and Halfcard creates it again"):
        await place.keeper().take_over()


async def test_the_ledger_of_a_quota_that_is_gone_is_nobodys_until_it_is_taken_over_again(place: Place) -> None:
    """A quota that comes back as the same object, as a default does, would reserve in a ledger that is not counted."""
    keeper = await place.leading()
    assert (place.ledger().quota_uid, place.ledger().is_ready) == ("q", True)
    keeper.budget = deleted_budget(NAME)
    await place.commit(keeper, {})
    assert (place.ledger().quota_uid, place.ledger().hard) == ("", {})
    await place.keeper().take_over()
    assert (place.ledger().quota_uid, place.ledger().is_ready) == ("q", False)


async def test_an_exemption_lifts_what_is_allowed_and_what_is_used_counts_on(place: Place) -> None:
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    exempt = BUDGET._replace(exemption=Exemption(noon, "the paper is due"))
    now = [noon - timedelta(seconds=1)]
    keeper = LedgerController(LedgerStore(place.calls, NAMESPACE), exempt, lambda: now[0])
    await keeper.take_over()
    await place.commit(keeper, {"u": entry(170)})
    assert (place.ledger().hard, used(place.ledger())) == ({}, {"cores": 170})
    assert (keeper.is_exempt, keeper.is_outdated) == (True, False)
    now[0] = noon
    assert (keeper.is_exempt, keeper.is_outdated) == (False, True)
    await place.commit(keeper, {"u": entry(170)})
    assert (place.ledger().hard, keeper.is_outdated) == ({"cores": 100}, False)


async def test_what_somebody_else_writes_there_of_pods_is_noticed_and_put_right(place: Place) -> None:
    keeper = await place.leading()
    live = {"u": entry(30)}
    await place.commit(keeper, live)
    assert (keeper.foreign_change, keeper.is_due(place.has_ended)) == ("", False)
    place.server.put(NAME, place.ledger()._replace(committed={"cores": 5}))
    keeper.stored = await LedgerStore(place.calls, NAMESPACE).read(NAME)
    assert (keeper.foreign_change, keeper.is_due(place.has_ended)) == ("cores=5 instead of 30", True)
    await place.commit(keeper, live)
    assert (used(place.ledger()), keeper.foreign_change) == ({"cores": 30}, "")
