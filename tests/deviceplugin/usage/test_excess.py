"""Containers that use more memory of a card than they were granted get an Event at their pod."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from deviceplugin.gpus.interface import Process
from deviceplugin.usage.excess import ExcessReports, excesses
from deviceplugin.usage.usage_report import NodeUsageReport
from halfcard.cards import Node
from kube.api.access import Access
from kube.api.calls import ApiCalls
from serving.log import Log
from tests.kube.listening import JsonHandler, listening

from ..usages import NODE, T4_MIB, load, owner, tenant, tensorflow, usage

NOW: Final = datetime(2026, 11, 25, 12, tzinfo=UTC)
SLICED: Final = replace(NODE, cards=tuple(replace(card, replicas=4) for card in NODE.cards), slices="nvidia.com/gpu")


def using(used_mib: int, node: Node = NODE, **words: int) -> NodeUsageReport:
    """Of a node with one container, which requests `words` and has a process on the first card."""
    loads = {"GPU-0": load(Process(7, used_mib, 5))}
    tenants = [tenant(tensorflow(**words), apps=["tensorflow"])]
    return usage(tenants, loads, {7: owner("vcuda")}, node)


SHARE: Final[Mapping[str, Any]] = {"core": 10, "memory": 4}
"""1024 MiB."""
EXCESSES: Final[dict[str, tuple[NodeUsageReport, list[int]]]] = {
    "the whole limit": (using(1024, **SHARE), []),
    "5 % and 256 MiB more": (using(1024 + 51 + 256, **SHARE), []),
    "a MiB more than that": (using(1024 + 51 + 257, **SHARE), [308]),
    "nine times the limit": (using(9216, **SHARE), [8192]),
    "memory alone": (using(4096, gpu_mem=2), [2048]),
    "more than half of a card": (using(T4_MIB, sgpu=1), [T4_MIB - T4_MIB // 2]),
    "a whole card": (using(T4_MIB, core=100), []),
    "cores alone, so all memory of the card": (using(T4_MIB, core=10), []),
    "a time slice": (using(T4_MIB, SLICED, gpu=1), []),
}


@pytest.mark.parametrize(("report", "expected"), EXCESSES.values(), ids=EXCESSES.keys())
def test_a_container_exceeds_its_limit_by_more_than_a_tolerance(report: NodeUsageReport, expected: list[int]) -> None:
    assert [each.part.excess_mib for each in excesses(report).values()] == expected


class Site:
    """An API server that stores Events, and the reports that write them."""

    def __init__(self, status: int = 201) -> None:
        self.events: list[dict[str, Any]] = []
        self.status = status
        self.now = NOW

    @asynccontextmanager
    async def reporting(self) -> AsyncIterator[ExcessReports]:
        site = self

        class Handler(JsonHandler):
            def do_POST(self) -> None:  # noqa: N802  (http.server's name)
                site.events.append({**self.asked(), "path": self.path})
                self.answer(site.status, {"message": "no"})

        with listening(Handler) as port:
            calls = ApiCalls(Access("127.0.0.1", port))
            yield ExcessReports(self.never, calls, "gpu1", Log(), lambda: site.now)
            calls.close()

    async def never(self) -> NodeUsageReport:
        raise AssertionError("measured by the test")


OVER: Final = using(9216, **SHARE)
IDLE: Final = using(0, **SHARE)


async def test_an_excess_that_lasts_for_two_measurements_is_an_event_at_the_pod() -> None:
    site = Site()
    async with site.reporting() as reports:
        await reports.report(OVER)
        assert site.events == []
        await reports.report(OVER)
    (event,) = site.events
    about = event["involvedObject"]
    assert event["path"] == "/api/v1/namespaces/default/events"
    assert (about["kind"], about["name"], about["fieldPath"]) == ("Pod", "vcuda", "spec.containers{tensorflow}")
    assert (event["reason"], event["source"]["host"]) == ("CardMemoryExceeded", "gpu1")
    assert event["message"] == (
        "container tensorflow uses 9216 MiB of card 0, and was granted 1024 MiB: its neighbours on the card may get too"
        " little; let it use less, or request more"
    )


async def test_a_short_excess_is_not_reported() -> None:
    site = Site()
    async with site.reporting() as reports:
        for measured in (OVER, IDLE, OVER, IDLE):
            await reports.report(measured)
    assert site.events == []


async def test_an_excess_that_goes_on_is_reported_every_half_hour_and_a_new_one_at_once() -> None:
    site = Site()
    async with site.reporting() as reports:
        for minutes in range(0, 61, 10):
            site.now = NOW + timedelta(minutes=minutes)
            await reports.report(OVER)
        assert [event["firstTimestamp"][11:16] for event in site.events] == ["12:10", "12:40"]
        for measured in (IDLE, OVER, OVER):
            await reports.report(measured)
    assert len(site.events) == 3


async def test_an_event_that_cannot_be_written_is_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    async with Site(status=403).reporting() as reports:
        await reports.report(OVER)
        await reports.report(OVER)
    line = json.loads(capsys.readouterr().err)
    assert (line["container"], line["mib"], line["why"]) == ("default/vcuda/tensorflow", 9216, "403 no")
