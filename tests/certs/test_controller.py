"""The loop around the looks: what it says and counts, how often, and that nothing ends it."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from prometheus_client import CollectorRegistry

from certs.chains import CONFIGURATIONS, Chain, ObjectPath, chains
from certs.controller import EVERY_S, ChainsController
from certs.metrics import CertificateMetrics
from certs.objects import Object
from certs.reconcile import CompletedStep
from certs.store import StoreError
from halfcard import names
from serving.log import Log
from tests.certs.handshakes import foreign_certificate
from tests.waiting import until

from .memory_store import MemoryStore

START = datetime(2026, 3, 1, tzinfo=UTC)
ADMISSION, EXTENDER = chains(names.NAMESPACE)


class Store(MemoryStore):
    """An event source that may be away, and that no test waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.reads = 0

    async def read(self, place: ObjectPath) -> Object | None:
        self.reads += 1
        if self.is_away:
            raise StoreError("the API server answered 500: no leader")
        return self.items.get(place)


class Scene:
    def __init__(self) -> None:
        self.store = Store()
        self.now = START
        self.reported: list[tuple[str, str]] = []
        self.registry = CollectorRegistry()
        self._lines = io.StringIO()
        log = Log(stream=self._lines)
        self.controller = ChainsController(
            self.store,
            (ADMISSION, EXTENDER),
            CertificateMetrics(self.registry, (ADMISSION, EXTENDER), lambda: self.now),
            self._report,
            log,
            clock=lambda: self.now,
            every_s=60,
        )

    async def _report(self, chain: Chain, done: CompletedStep, _: datetime) -> None:
        self.reported.append((chain.title, done.place.name))

    async def reconcile(self) -> None:
        await self.controller.reconcile_chain(ADMISSION)

    def lines(self, level: str) -> list[tuple[str, str]]:
        found = [json.loads(line) for line in self._lines.getvalue().splitlines()]
        return [(line["event"], line["reason"]) for line in found if line["level"] == level]

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"halfcard_certs_{name}", labels)


async def test_each_change_is_logged_counted_and_reported() -> None:
    scene = Scene()
    await scene.reconcile()
    assert scene.lines("info") == [
        ("certificates written", "ca.crt is missing"),
        ("certificates written", "tls.crt is missing"),
    ]
    assert scene.reported == [("admission", names.ADMISSION_CA), ("admission", names.ADMISSION_TLS)]
    assert scene.value("changes_total", object=names.ADMISSION_CA) == 1


async def test_days_left_count_down() -> None:
    scene = Scene()
    await scene.reconcile()
    assert scene.value("days_left", certificate=names.ADMISSION_TLS) == 90
    scene.now += timedelta(days=1, hours=12)
    assert scene.value("days_left", certificate=names.ADMISSION_TLS) == 88.5
    assert scene.value("due", chain="admission") == 0


async def test_days_left_count_down_while_nothing_can_be_read_and_the_last_check_gets_older() -> None:
    scene = Scene()
    assert scene.value("last_look_timestamp_seconds", chain="extender") == 0
    await scene.reconcile()
    scene.store.is_away = True
    scene.now += timedelta(days=80)
    await scene.reconcile()
    assert scene.value("days_left", certificate=names.ADMISSION_TLS) == 10
    assert scene.value("last_look_timestamp_seconds", chain="admission") == START.timestamp()
    scene.now += timedelta(days=80)
    assert scene.value("days_left", certificate=names.ADMISSION_TLS) == 0


async def test_a_failure_is_logged_once_and_again_when_it_comes_back() -> None:
    scene = Scene()
    for is_away in (True, True, False, True):
        scene.store.is_away = is_away
        await scene.reconcile()
    assert scene.lines("error") == [("certificates not renewed", "the API server answered 500: no leader")] * 2


async def test_an_invalid_object_does_not_stop_the_renewal_of_others() -> None:
    scene = Scene()
    scene.store.items[ADMISSION.authority] = {"metadata": "garbage"}
    await scene.reconcile()
    await scene.reconcile()
    (failure,) = scene.lines("error")
    assert "this is a bug, please report it" in failure[1]
    del scene.store.items[ADMISSION.authority]
    await scene.reconcile()
    assert scene.value("days_left", certificate=names.ADMISSION_TLS) == 90


async def test_unmanaged_certificates_are_logged_once() -> None:
    scene = Scene()
    scene.store.register(foreign_certificate())
    await scene.reconcile()
    await scene.reconcile()
    assert [event for event, _ in scene.lines("warn")] == ["certificates not managed"] * len(CONFIGURATIONS)


async def test_it_is_ready_while_the_last_check_of_every_chain_is_recent() -> None:
    scene = Scene()
    assert "admission, extender were not checked" in (scene.controller.why_not_ready() or "")
    for chain in (ADMISSION, EXTENDER):
        await scene.controller.reconcile_chain(chain)
    assert scene.controller.why_not_ready() is None
    scene.now += timedelta(minutes=4)
    await scene.reconcile()
    assert "of extender were not" in (scene.controller.why_not_ready() or "")


async def test_changes_start_one_check_at_once_however_many_there_are() -> None:
    scene = Scene()

    running = asyncio.create_task(scene.controller.run())
    await until(lambda: scene.controller.why_not_ready() is None)
    reads = scene.store.reads
    for _ in range(100):
        scene.controller.wake()
        await asyncio.sleep(0)
    await until(lambda: scene.store.reads > reads)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert scene.store.reads - reads == 7


async def test_a_certificate_that_expired_while_the_machine_was_suspended_is_renewed_at_the_next_check() -> None:
    """The event loop's clock does not advance meanwhile: it may time only the next short pause."""
    scene = Scene()
    await scene.reconcile()
    scene.now += timedelta(days=100)
    await scene.reconcile()
    assert scene.lines("info")[-1] == ("certificates written", "the leaf expired at 2026-05-30T00:00:00Z")
    assert timedelta(seconds=EVERY_S) <= timedelta(minutes=1)
