"""What is said of ResourceQuotas at the quotas themselves: once, and counted when it is said again."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from halfcard.dialects import Dialects
from kube.api.access import Access
from kube.api.calls import ApiCalls, NoAnswerError
from kube.quota.native_quota_source import NativeQuotas
from quota.native import untracked_reports
from quota.native.untracked_reports import UntrackedReports
from quota.reporting.quota_events import QuotaEvents
from tests.halfcard.native import quota, read
from tests.kube.calling import asked
from tests.kube.node_server import serving
from tests.kube.object_server import ObjectServer, serving_objects
from tests.waiting import until

EVENTS: Final = "/api/v1/namespaces/team-a/events"


def tell(server: ObjectServer, *said: tuple[str, str]) -> list[str]:
    async def run(calls: ApiCalls) -> list[str]:
        events = QuotaEvents(calls)
        return [await events.send(read(quota({})).reference, reason, message) for reason, message in said]

    return asked(server.port, run)


def stored(server: ObjectServer) -> list[dict[str, Any]]:
    return [item for path, item in server.objects.items() if path.startswith(EVENTS)]


def test_one_event_counts_its_repetitions_by_any_replica() -> None:
    with serving_objects() as server:
        for message in ("first", "second"):
            assert tell(server, ("NeverCounted", message)) == [""]
        (event,) = stored(server)
    assert (event["count"], event["message"], event["type"]) == (2, "second", "Warning")
    assert event["involvedObject"]["uid"] == "uid-gpu"
    assert event["involvedObject"]["kind"] == "ResourceQuota"


def test_each_reason_has_its_own_event() -> None:
    with serving_objects() as server:
        tell(server, ("NeverCounted", "a"), ("MadeToCount", "b"))
        assert len(stored(server)) == 2


def test_an_event_that_cannot_be_written_is_reported() -> None:
    with serving_objects() as server:
        server.faults += ["refused", "refused"]
        assert tell(server, ("NeverCounted", "a")) == ["event at team-a/gpu: the API server answered 500: no leader"]


async def test_the_repair_at_the_start_is_retried_until_it_is_answered_and_done_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(untracked_reports, "_EVERY_S", 0.01)
    tries, looks = list[int](), list[int]()

    async def repair() -> None:
        tries.append(len(tries))
        if len(tries) < 3:
            raise NoAnswerError("no answer")

    def leads() -> bool:
        looks.append(len(tries))
        return True

    with serving() as server:
        access = Access("127.0.0.1", server.port)
        known = NativeQuotas(access, Dialects().resources)
        reports = UntrackedReports(known, QuotaEvents(ApiCalls(access)), leads, repair)
        jobs = [asyncio.create_task(each()) for each in (known.informer.run, reports.run)]
        await until(lambda: looks.count(3) == 3)
        for job in jobs:
            job.cancel()
        await asyncio.wait(jobs)
    assert len(tries) == 3
