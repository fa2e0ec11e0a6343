"""Reservations of one ledger, over a real connection: many at once, lost answers, writers that come between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import pytest

from halfcard.quota.ledger import Busy, Entry, Exceeded, Ledger, StoredPods, commit, take_over, used
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import ConfigMapMetadata, LedgerStore, WatchedLedger, written
from kube.ledger.ledger_writer import Clock, LedgerWriter
from tests.kube.ledger_server import NAMESPACE, LedgerServer, serving_calls

NAME: Final = "gpuquota.team.gpu"
OF: Final = "uid-of-the-quota"
READY: Final = commit(take_over(Ledger({"cores": 100}), OF), 1, StoredPods({}))


def entry(cores: int = 10) -> Entry:
    return Entry("team", "p", {"cores": cores})


@dataclass
class Place:
    server: LedgerServer
    calls: ApiCalls

    def desk(self, clock: Clock = time.monotonic) -> LedgerWriter:
        """Of another replica."""
        return LedgerWriter(LedgerStore(self.calls, NAMESPACE), NAME, clock)

    def open(self) -> set[str]:
        return set(self.server.ledger(NAME).reservations)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with serving_calls() as (server, calls):
        server.put(NAME, READY)
        yield Place(server, calls)


async def test_a_reservation_is_stored_before_its_caller_is_answered(place: Place) -> None:
    assert await place.desk().reserve("u", entry(), OF) is True
    assert place.open() == {"u"}


async def test_all_who_come_while_a_write_is_under_way_share_the_next(place: Place) -> None:
    desk = place.desk()
    place.server.faults = ["held"]
    first = asyncio.create_task(desk.reserve("first", entry(1), OF))
    await asyncio.to_thread(place.server.held.wait, 10)
    others = [asyncio.create_task(desk.reserve(f"u{at}", entry(1), OF)) for at in range(50)]
    await asyncio.sleep(0)
    place.server.release.set()
    await asyncio.gather(first, *others)
    assert len(place.open()) == 51 and place.server.writes() == 2


async def test_a_call_that_was_cancelled_before_its_write_reserves_nothing(place: Place) -> None:
    desk = place.desk()
    place.server.faults = ["held"]
    first = asyncio.create_task(desk.reserve("first", entry(1), OF))
    await asyncio.to_thread(place.server.held.wait, 10)
    cancelled = asyncio.create_task(desk.reserve("cancelled", entry(1), OF))
    last = asyncio.create_task(desk.reserve("last", entry(1), OF))
    await asyncio.sleep(0)
    cancelled.cancel()
    place.server.release.set()
    await asyncio.gather(first, last)
    assert place.open() == {"first", "last"}


async def test_of_a_crowd_on_several_replicas_as_many_pass_as_there_is_room_for(place: Place) -> None:
    desks = [place.desk() for _ in range(3)]
    asks = [desks[at % 3].reserve(f"u{at}", entry(), OF) for at in range(60)]
    answers = await asyncio.gather(*asks, return_exceptions=True)
    assert sum(answer is True for answer in answers) == 10
    assert sum(isinstance(answer, Exceeded) for answer in answers) == 50
    assert used(place.server.ledger(NAME)) == {"cores": 100}


async def test_nobody_is_refused_on_what_was_read_before_he_came(place: Place) -> None:
    desk = place.desk()
    await desk.reserve("u", entry(100), OF)
    with pytest.raises(Exceeded):
        await desk.reserve("v", entry(), OF)
    place.server.put(NAME, READY)
    assert await desk.reserve("v", entry(), OF)


async def test_a_writer_that_comes_between_costs_another_round_and_nothing_else(place: Place) -> None:
    place.server.faults = ["outrun", "outrun"]
    assert await place.desk().reserve("u", entry(), OF) is True
    assert place.open() == {"u"}


async def test_whoever_has_written_lets_others_write_before_he_writes_again(place: Place) -> None:
    one, other = (place.desk(lambda: 100.0) for _ in range(2))  # nobody's turn passes by itself

    async def reserve(desk: LedgerWriter, uid: str) -> None:
        await desk.reserve(uid, entry(1), OF)
        for each in (one, other):
            each.ledger_changed(place.server.seen(NAME))

    for desk, uid in ((one, "1"), (other, "2"), (one, "3")):
        await reserve(desk, uid)
    await asyncio.gather(reserve(one, "5"), reserve(other, "4"))
    assert [*place.server.ledger(NAME).reservations] == ["1", "2", "3", "4", "5"]
    assert place.server.writes() == 5


async def test_a_reservation_whose_answer_was_lost_is_found_but_not_counted_as_made_by_this_call(place: Place) -> None:
    place.server.faults = ["unanswered"]
    assert await place.desk().reserve("u", entry(), OF) is False
    assert place.open() == {"u"} and place.server.writes() == 1


async def test_a_write_that_was_not_heard_is_written_again(place: Place) -> None:
    place.server.faults = ["unheard"]
    await place.desk().reserve("u", entry(), OF)
    assert place.open() == {"u"}


async def test_a_second_call_for_a_reserved_pod_is_admitted_and_makes_no_reservation(place: Place) -> None:
    await place.desk().reserve("u", entry(), OF)
    assert await place.desk().reserve("u", entry(), OF) is False
    assert place.server.writes() == 1


async def test_what_is_taken_back_is_free_again(place: Place) -> None:
    desk = place.desk()
    await desk.reserve("u", entry(100), OF)
    desk.release("u")
    assert await desk.reserve("v", entry(100), OF)
    assert place.open() == {"v"}


async def test_what_was_settled_meanwhile_is_not_waited_for_to_be_taken_back(place: Place) -> None:
    desk = place.desk()
    await desk.reserve("u", entry(), OF)
    place.server.put(NAME, READY)
    desk.release("u")
    async with asyncio.timeout(5):
        await desk.reserve("v", entry(), OF)
    assert place.open() == {"v"}


async def test_the_ledger_of_another_quota_grants_nothing_until_it_is_this_ones(place: Place) -> None:
    desk = place.desk()
    with pytest.raises(Busy, match="still being initialised"):
        await desk.reserve("u", entry(), "another")
    place.server.put(NAME, commit(take_over(READY, "another"), 2, StoredPods({})))
    assert await desk.reserve("u", entry(), "another")


async def test_where_there_is_no_ledger_yet_nobody_is_told_anything(place: Place) -> None:
    place.server.drop(NAME)
    with pytest.raises(Busy, match="still being initialised"):
        await place.desk().reserve("u", entry(), OF)


@pytest.mark.parametrize("text", ["scribble", "[]", '[{"cores":"many"}]'])
async def test_what_is_no_ledger_keeps_nobody_waiting(text: str, place: Place) -> None:
    place.server.put_text(NAME, text)
    async with asyncio.timeout(2):
        with pytest.raises(Busy, match="holds no ledger of Halfcard's"):
            await place.desk().reserve("u", entry(), OF)


async def test_what_a_version_to_come_has_written_is_left_as_it_is_and_says_what_to_do(place: Place) -> None:
    later = place.server.seen(NAME).content
    later.data["format"] = "2"
    place.server.put_map(NAME, later)
    with pytest.raises(Busy, match=r"of format 2, .* run one version of Halfcard everywhere"):
        await place.desk().reserve("u", entry(), OF)
    assert place.server.writes() == 0


async def test_a_check_reserves_nothing(place: Place) -> None:
    await place.desk().check(entry(), OF)
    with pytest.raises(Exceeded):
        await place.desk().check(entry(101), OF)
    assert place.server.writes() == 0


# --- what is known meanwhile ------------------------------------------------------------------------------------------


async def test_while_a_write_is_tried_again_what_was_seen_last_is_still_known(place: Place) -> None:
    desk = place.desk()
    desk.ledger_changed(place.server.seen(NAME))
    place.server.faults = ["outrun"]
    asking = asyncio.create_task(desk.reserve("u", entry(), OF))
    while not asking.done():
        assert desk.known() is not None
        await asyncio.sleep(0)


async def test_what_was_seen_last_is_known_too_after_nobody_could_be_told_anything(place: Place) -> None:
    desk = place.desk()
    await desk.reserve("u", entry(100), OF)
    place.server.drop(NAME)
    with pytest.raises(Busy, match="still being initialised"):
        await desk.reserve("v", entry(), OF)
    known = desk.known()
    assert known is not None and used(known) == {"cores": 100}
    place.server.put(NAME, READY)
    assert await desk.reserve("v", entry(100), OF)  # it was not written over


async def test_a_watch_that_is_faster_than_the_answer_is_believed(place: Place) -> None:
    desk, later = place.desk(), READY._replace(committed={"cores": 70})
    place.server.faults = ["held"]
    asking = asyncio.create_task(desk.reserve("u", entry(), OF))
    await asyncio.to_thread(place.server.held.wait, 10)
    desk.ledger_changed(WatchedLedger(NAME, written(ConfigMapMetadata(NAME, "9999"), later)))
    assert desk.known() == later
    place.server.release.set()
    await asking
    assert desk.known() == later
