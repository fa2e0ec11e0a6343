"""Reservations of one ledger, over a real connection: many at once, lost answers, writers that come between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import pytest

from halfcard.quota.ledger import (
    MAX_RESERVATIONS_OF_NAMESPACE,
    Busy,
    Contended,
    Crowded,
    Entry,
    Exceeded,
    Ledger,
    StoredPods,
    commit,
    take_over,
    used,
)
from halfcard.quota.reservation_expiry import CERTAIN_S, IN_CALL_S
from kube.api.calls import ApiCalls
from kube.ledger.ledger_store import ConfigMapMetadata, LedgerStore, WatchedLedger, to_config_map
from kube.ledger.ledger_writer import Clock, LedgerWriter
from tests.kube.ledger_server import NAMESPACE, LedgerServer, serving_calls
from tests.waiting import until

NAME: Final = "gpuquota.team.gpu"
OF: Final = "uid-of-the-quota"
READY: Final = commit(take_over(Ledger({"cores": 100}), OF), 1, StoredPods({}, {}))


def entry(cores: int = 10) -> Entry:
    return Entry("team", "p", {"cores": cores})


@dataclass
class Scene:
    server: LedgerServer
    calls: ApiCalls

    def writer(self, clock: Clock = time.monotonic) -> LedgerWriter:
        """Of another replica."""
        return LedgerWriter(LedgerStore(self.calls, NAMESPACE), NAME, clock)

    def open(self) -> set[str]:
        return set(self.server.ledger(NAME).reservations)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with serving_calls() as (server, calls):
        server.put(NAME, READY)
        yield Scene(server, calls)


async def test_a_reservation_is_stored_before_its_caller_is_answered(scene: Scene) -> None:
    assert await scene.writer().reserve("u", entry(), OF) is True
    assert scene.open() == {"u"}


async def test_all_calls_that_arrive_during_a_write_share_the_next(scene: Scene) -> None:
    writer = scene.writer()
    scene.server.faults = ["held"]
    first = asyncio.create_task(writer.reserve("first", entry(1), OF))
    await asyncio.to_thread(scene.server.held.wait, 10)
    others = [asyncio.create_task(writer.reserve(f"u{at}", entry(1), OF)) for at in range(50)]
    await asyncio.sleep(0)
    scene.server.release.set()
    await asyncio.gather(first, *others)
    assert len(scene.open()) == 51 and scene.server.writes() == 2


async def test_a_call_that_was_cancelled_before_its_write_reserves_nothing(scene: Scene) -> None:
    writer = scene.writer()
    scene.server.faults = ["held"]
    first = asyncio.create_task(writer.reserve("first", entry(1), OF))
    await asyncio.to_thread(scene.server.held.wait, 10)
    cancelled = asyncio.create_task(writer.reserve("cancelled", entry(1), OF))
    last = asyncio.create_task(writer.reserve("last", entry(1), OF))
    await asyncio.sleep(0)
    cancelled.cancel()
    scene.server.release.set()
    await asyncio.gather(first, last)
    assert scene.open() == {"first", "last"}


async def test_of_many_calls_on_several_replicas_as_many_succeed_as_fit(scene: Scene) -> None:
    writers = [scene.writer() for _ in range(3)]
    asks = [writers[at % 3].reserve(f"u{at}", entry(), OF) for at in range(60)]
    answers = await asyncio.gather(*asks, return_exceptions=True)
    assert sum(answer is True for answer in answers) == 10
    assert sum(isinstance(answer, Exceeded) for answer in answers) == 50
    assert used(scene.server.ledger(NAME)) == {"cores": 100}


async def test_no_call_is_refused_by_a_read_that_began_before_it(scene: Scene) -> None:
    writer = scene.writer()
    await writer.reserve("u", entry(100), OF)
    with pytest.raises(Exceeded):
        await writer.reserve("v", entry(), OF)
    scene.server.put(NAME, READY)
    assert await writer.reserve("v", entry(), OF)


async def test_a_conflicting_writer_costs_only_another_round(scene: Scene) -> None:
    scene.server.faults = ["outrun", "outrun"]
    assert await scene.writer().reserve("u", entry(), OF) is True
    assert scene.open() == {"u"}


async def test_a_replica_that_has_written_lets_others_write_before_it_writes_again(scene: Scene) -> None:
    one, other = (scene.writer(lambda: 100.0) for _ in range(2))  # nobody's turn passes by itself

    async def reserve(writer: LedgerWriter, uid: str) -> None:
        await writer.reserve(uid, entry(1), OF)
        for each in (one, other):
            each.ledger_changed(scene.server.seen(NAME))

    for writer, uid in ((one, "1"), (other, "2"), (one, "3")):
        await reserve(writer, uid)
    await asyncio.gather(reserve(one, "5"), reserve(other, "4"))
    assert [*scene.server.ledger(NAME).reservations] == ["1", "2", "3", "4", "5"]
    assert scene.server.writes() == 5


async def test_a_reservation_whose_answer_was_lost_is_found_but_not_counted_as_made_by_this_call(scene: Scene) -> None:
    scene.server.faults = ["unanswered"]
    assert await scene.writer().reserve("u", entry(), OF) is False
    assert scene.open() == {"u"} and scene.server.writes() == 1


async def test_a_write_that_never_arrived_is_repeated(scene: Scene) -> None:
    scene.server.faults = ["unheard"]
    await scene.writer().reserve("u", entry(), OF)
    assert scene.open() == {"u"}


async def test_a_second_call_for_a_reserved_pod_is_admitted_and_makes_no_reservation(scene: Scene) -> None:
    await scene.writer().reserve("u", entry(), OF)
    assert await scene.writer().reserve("u", entry(), OF) is False
    assert scene.server.writes() == 1


async def test_a_released_amount_is_free_again(scene: Scene) -> None:
    writer = scene.writer()
    await writer.reserve("u", entry(100), OF)
    writer.release("u")
    assert await writer.reserve("v", entry(100), OF)
    assert scene.open() == {"v"}


async def test_a_release_of_a_reservation_that_was_committed_meanwhile_is_dropped(scene: Scene) -> None:
    writer = scene.writer()
    await writer.reserve("u", entry(), OF)
    scene.server.put(NAME, READY)
    writer.release("u")
    async with asyncio.timeout(5):
        await writer.reserve("v", entry(), OF)
    assert scene.open() == {"v"}


async def test_nothing_is_reserved_in_the_ledger_of_another_quota_until_it_is_taken_over(scene: Scene) -> None:
    writer = scene.writer()
    with pytest.raises(Busy, match="still being initialised"):
        await writer.reserve("u", entry(), "another")
    scene.server.put(NAME, commit(take_over(READY, "another"), 2, StoredPods({}, {})))
    assert await writer.reserve("u", entry(), "another")


async def test_without_a_ledger_calls_are_busy(scene: Scene) -> None:
    scene.server.drop(NAME)
    with pytest.raises(Busy, match="still being initialised"):
        await scene.writer().reserve("u", entry(), OF)


@pytest.mark.parametrize("text", ["scribble", "[]", '[{"cores":"many"}]'])
async def test_an_invalid_ledger_makes_calls_busy_at_once(text: str, scene: Scene) -> None:
    scene.server.put_text(NAME, text)
    async with asyncio.timeout(2):
        with pytest.raises(Busy, match="is not a valid ledger"):
            await scene.writer().reserve("u", entry(), OF)


async def test_a_ledger_of_a_later_format_is_not_written_over_and_the_message_says_what_to_do(scene: Scene) -> None:
    later = scene.server.seen(NAME).content
    later.data["format"] = "2"
    scene.server.put_map(NAME, later)
    with pytest.raises(Busy, match=r'got format "2"; .* run the same version of all parts of Halfcard'):
        await scene.writer().reserve("u", entry(), OF)
    assert scene.server.writes() == 0


async def test_a_check_reserves_nothing(scene: Scene) -> None:
    await scene.writer().check(entry(), OF)
    with pytest.raises(Exceeded):
        await scene.writer().check(entry(101), OF)
    assert scene.server.writes() == 0


# --- waiting for other reservations -----------------------------------------------------------------------------------


def soon(seconds: float = 60.0) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_calls_that_wait_get_what_this_replica_releases_in_their_order(scene: Scene) -> None:
    writer = scene.writer()
    await writer.reserve("u", entry(100), OF)
    waiting = [asyncio.create_task(writer.reserve(name, entry(60), OF, soon(), waits=True)) for name in ("v", "w")]
    await until(lambda: scene.server.calls.count("GET") == 2, what="the read before a refusal")
    writer.release("u")
    assert await waiting[0]
    assert scene.open() == {"v"} and not waiting[1].done()
    waiting[1].cancel()


async def test_a_call_that_waits_is_refused_once_the_amount_is_committed(scene: Scene) -> None:
    writer = scene.writer()
    await writer.reserve("u", entry(100), OF)
    waiting = asyncio.create_task(writer.reserve("v", entry(), OF, soon(), waits=True))
    stored = StoredPods({"u": entry(100)}, {"cores": 100})
    scene.server.put(NAME, commit(scene.server.ledger(NAME), 1, stored))
    writer.ledger_changed(scene.server.seen(NAME))
    with pytest.raises(Exceeded) as full:
        await waiting
    assert not isinstance(full.value, Contended)


async def test_a_call_that_waits_sees_a_change_that_no_watch_reports(scene: Scene) -> None:
    writer = scene.writer()
    await writer.reserve("u", entry(100), OF)
    waiting = asyncio.create_task(writer.reserve("v", entry(), OF, soon(), waits=True))
    await until(lambda: scene.server.calls.count("GET") == 2, what="the read before a refusal")
    scene.server.put(NAME, READY)
    assert await waiting


async def test_a_small_charge_does_not_wait_behind_a_large_one(scene: Scene) -> None:
    writer = scene.writer()
    await writer.reserve("u", entry(90), OF)
    large = asyncio.create_task(writer.reserve("large", entry(60), OF, soon(), waits=True))
    assert await writer.reserve("small", entry(10), OF, soon(), waits=True)
    large.cancel()


async def test_a_full_namespace_waits_until_one_of_its_pods_is_stored(scene: Scene) -> None:
    crowd = {f"u{at}": entry(0) for at in range(MAX_RESERVATIONS_OF_NAMESPACE)}
    scene.server.put(NAME, READY._replace(reservations=crowd))
    waiting = asyncio.create_task(scene.writer().reserve("v", entry(), OF, soon(), waits=True))
    scene.server.put(NAME, READY)
    assert await waiting
    scene.server.put(NAME, READY._replace(reservations=crowd))
    with pytest.raises(Crowded):
        await scene.writer().reserve("v", entry(), OF, soon(0.1), waits=True)


async def test_a_call_waits_for_a_ledger_that_is_about_to_be_created_and_counted(scene: Scene) -> None:
    scene.server.drop(NAME)
    waiting = asyncio.create_task(scene.writer().reserve("u", entry(), OF, soon(), waits=True))
    await until(lambda: scene.server.calls, what="the first read")
    scene.server.put(NAME, READY._replace(is_ready=False))
    await until(lambda: scene.server.calls.count("GET") > 2, what="another read")
    scene.server.put(NAME, READY)
    assert await waiting


async def test_a_release_whose_answer_was_lost_is_repeated(scene: Scene) -> None:
    writer = scene.writer()
    await writer.reserve("u", entry(), OF)
    scene.server.faults = ["unheard", "unheard"]
    writer.release("u")
    await until(lambda: scene.open() == set())


async def test_a_replica_says_when_a_reservation_in_the_way_is_certainly_settled(scene: Scene) -> None:
    now = 100.0
    writer = scene.writer(lambda: now)
    await writer.reserve("u", entry(100), OF)
    with pytest.raises(Contended):
        await writer.reserve("v", entry(), OF, soon(0.1), waits=True)
    assert writer.retry_s(entry()) == IN_CALL_S
    now = 110.0
    assert writer.retry_s(entry()) == CERTAIN_S - 10


# --- what is known meanwhile ------------------------------------------------------------------------------------------


async def test_the_last_ledger_is_known_while_a_write_is_retried(scene: Scene) -> None:
    writer = scene.writer()
    writer.ledger_changed(scene.server.seen(NAME))
    scene.server.faults = ["outrun"]
    asking = asyncio.create_task(writer.reserve("u", entry(), OF))
    while not asking.done():
        assert writer.known() is not None
        await asyncio.sleep(0)


async def test_the_last_ledger_is_known_after_a_failed_call(scene: Scene) -> None:
    writer = scene.writer()
    await writer.reserve("u", entry(100), OF)
    scene.server.drop(NAME)
    with pytest.raises(Busy, match="still being initialised"):
        await writer.reserve("v", entry(), OF)
    known = writer.known()
    assert known is not None and used(known) == {"cores": 100}
    scene.server.put(NAME, READY)
    assert await writer.reserve("v", entry(100), OF)  # it was not written over


async def test_a_watch_that_is_faster_than_the_answer_counts(scene: Scene) -> None:
    writer, later = scene.writer(), READY._replace(committed={"cores": 70})
    scene.server.faults = ["held"]
    asking = asyncio.create_task(writer.reserve("u", entry(), OF))
    await asyncio.to_thread(scene.server.held.wait, 10)
    writer.ledger_changed(WatchedLedger(NAME, to_config_map(ConfigMapMetadata(NAME, "9999"), later)))
    assert writer.known() == later
    scene.server.release.set()
    await asking
    assert writer.known() == later
