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
class Scene:
    server: LedgerServer
    calls: ApiCalls
    clock: float = 0.0
    stored: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)

    def controller(self) -> LedgerController:
        return LedgerController(LedgerStore(self.calls, NAMESPACE), BUDGET)

    async def leading(self) -> LedgerController:
        controller = self.controller()
        await controller.take_over()
        await self.commit(controller, {})
        return controller

    async def commit(self, controller: LedgerController, live: Mapping[str, Entry]) -> None:
        """With these pods stored and no others."""
        for uid in {*controller.usage.entries, *live}:
            controller.usage.put(uid, CountedPod(live[uid]) if uid in live else None)
        await controller.commit(self.has_ended)

    def has_ended(self, uid: str) -> bool:
        return uid in self.ended

    async def is_stored(self, _entry: Entry, uid: str) -> bool:
        return uid in self.stored

    async def pass_time(self, controller: LedgerController, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.clock += 1.0
            await controller.expire(lambda: self.clock, self.is_stored)

    def ledger(self) -> Ledger:
        return self.server.ledger(NAME)

    def reserve(self, *uids: str) -> None:
        ledger = self.ledger()
        for uid in uids:
            ledger = reserve(ledger, uid, entry())
        self.server.put(NAME, ledger)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with serving_calls() as (server, calls):
        yield Scene(server, calls)


async def test_a_new_ledger_is_ready_once_all_pods_are_counted(scene: Scene) -> None:
    controller = scene.controller()
    await controller.take_over()
    assert (scene.ledger().is_ready, scene.ledger().quota_uid, scene.ledger().hard) == (False, "q", {"cores": 100})
    await scene.commit(controller, {"u": entry(70)})
    assert scene.ledger().is_ready and used(scene.ledger()) == {"cores": 70}
    assert scene.ledger().late == frozenset()


async def test_a_takeover_deposes_the_earlier_leader(scene: Scene) -> None:
    before = await scene.leading()
    after = await scene.leading()
    with pytest.raises(LostLeadership):
        await scene.commit(before, {"u": entry()})
    await scene.commit(after, {"u": entry()})
    assert used(scene.ledger()) == {"cores": 10}


async def test_a_commit_keeps_what_was_reserved_meanwhile(scene: Scene) -> None:
    controller = await scene.leading()
    scene.reserve("u", "v")
    await scene.commit(controller, {"u": entry()})
    assert scene.ledger().reservations.keys() == {"v"} and used(scene.ledger()) == {"cores": 20}


async def test_the_reservation_of_a_pod_that_has_ended_is_released_at_once(scene: Scene) -> None:
    controller = await scene.leading()
    scene.reserve("u")
    scene.ended.add("u")
    await scene.pass_time(controller, 1)
    assert controller.is_due(scene.has_ended)
    await scene.commit(controller, {})
    assert used(scene.ledger()) == {}


async def test_a_pod_without_a_reservation_is_late_where_the_ledger_is_exceeded(scene: Scene) -> None:
    controller = await scene.leading()
    await scene.commit(controller, {"u": entry(90)})
    await scene.commit(controller, {"u": entry(90), "v": entry(20)})
    assert scene.ledger().late == {"v"}


async def test_a_reservation_whose_pod_never_comes_expires_after_its_time_and_two_looks(scene: Scene) -> None:
    controller = await scene.leading()
    scene.reserve("u", "slow")
    scene.stored.add("slow")
    await scene.pass_time(controller, OLD_S + APART_S)
    assert scene.ledger().reservations.keys() == {"u", "slow"}
    await scene.pass_time(controller, 3)
    assert scene.ledger().reservations.keys() == {"slow"}


async def test_while_the_api_server_does_not_answer_no_reservation_ages(scene: Scene) -> None:
    controller = await scene.leading()
    scene.reserve("u")
    await scene.pass_time(controller, OLD_S - 5)
    scene.clock += 3600.0
    await scene.pass_time(controller, 3)
    assert scene.ledger().reservations.keys() == {"u"}


async def test_the_limits_follow_the_quota(scene: Scene) -> None:
    controller = await scene.leading()
    controller.budget = BUDGET._replace(hard={"cores": 5})
    await scene.commit(controller, {})
    assert scene.ledger().hard == {"cores": 5}


async def test_gained_room_is_reported_once(scene: Scene) -> None:
    controller = await scene.leading()
    assert controller.has_gained_room() and not controller.has_gained_room()
    await scene.commit(controller, {"u": entry(100)})
    assert not controller.has_gained_room()
    await scene.commit(controller, {"u": entry(90)})
    assert controller.has_gained_room()


async def test_a_deleted_ledger_is_created_and_counted_again(scene: Scene) -> None:
    controller = await scene.leading()
    scene.server.drop(NAME)
    with pytest.raises(LostLeadership):
        await scene.commit(controller, {"u": entry()})
    await controller.take_over()
    assert not scene.ledger().is_ready


async def test_the_ledger_of_a_deleted_quota_is_deleted_after_its_reservations(scene: Scene) -> None:
    controller = await scene.leading()
    scene.reserve("u")
    await scene.pass_time(controller, 1)
    await controller.delete_if_unused()
    assert scene.server.there() == {NAME}
    await scene.pass_time(controller, OLD_S + APART_S + 3)
    await controller.delete_if_unused()
    assert scene.server.there() == set()


async def test_an_invalid_ledger_is_reported_with_what_to_do(scene: Scene) -> None:
    scene.server.put_text(NAME, "scribble")
    with pytest.raises(LedgerError, match=f"{NAME} is not a valid ledger: .* delete it, and Halfcard creates it again"):
        await scene.controller().take_over()


async def test_the_ledger_of_a_deleted_quota_reserves_nothing_until_it_is_taken_over_again(scene: Scene) -> None:
    """A quota that comes back as the same object, as a default does, would reserve in a ledger that is not counted."""
    controller = await scene.leading()
    assert (scene.ledger().quota_uid, scene.ledger().is_ready) == ("q", True)
    controller.budget = deleted_budget(NAME)
    await scene.commit(controller, {})
    assert (scene.ledger().quota_uid, scene.ledger().hard) == ("", {})
    await scene.controller().take_over()
    assert (scene.ledger().quota_uid, scene.ledger().is_ready) == ("q", False)


async def test_an_exemption_lifts_the_limits_and_usage_is_still_counted(scene: Scene) -> None:
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    exempt = BUDGET._replace(exemption=Exemption(noon, "the paper is due"))
    now = [noon - timedelta(seconds=1)]
    controller = LedgerController(LedgerStore(scene.calls, NAMESPACE), exempt, lambda: now[0])
    await controller.take_over()
    await scene.commit(controller, {"u": entry(170)})
    assert (scene.ledger().hard, used(scene.ledger())) == ({}, {"cores": 170})
    assert (controller.is_exempt, controller.is_outdated) == (True, False)
    now[0] = noon
    assert (controller.is_exempt, controller.is_outdated) == (False, True)
    await scene.commit(controller, {"u": entry(170)})
    assert (scene.ledger().hard, controller.is_outdated) == ({"cores": 100}, False)


async def test_committed_amounts_that_another_writer_changed_are_corrected(scene: Scene) -> None:
    controller = await scene.leading()
    live = {"u": entry(30)}
    await scene.commit(controller, live)
    assert (controller.foreign_change, controller.is_due(scene.has_ended)) == ("", False)
    scene.server.put(NAME, scene.ledger()._replace(committed={"cores": 5}))
    controller.stored = await LedgerStore(scene.calls, NAMESPACE).read(NAME)
    assert (controller.foreign_change, controller.is_due(scene.has_ended)) == ("cores=5 instead of 30", True)
    await scene.commit(controller, live)
    assert (used(scene.ledger()), controller.foreign_change) == ({"cores": 30}, "")
