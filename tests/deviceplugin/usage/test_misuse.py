"""Pods that use of cards what they were not granted get an Event, and a mark for the extender, which evicts them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from deviceplugin.gpus.interface import Process
from deviceplugin.usage.misuse import misuses
from deviceplugin.usage.misuse_reports import MisuseReports
from deviceplugin.usage.usage_report import NodeUsageReport
from halfcard.cards import Node
from halfcard.placing.pod_facts import PodFacts
from kube.api.access import Access
from kube.api.calls import ApiCalls
from serving.log import Log
from tests.builders import pod
from tests.kube.listening import JsonHandler, listening

from ..usages import NODE, T4_MIB, facts_of, load, owner, tenant, tensorflow, usage

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
    found = misuses(report, {}, frozenset())
    assert [each.used_mib - granted(report) for each in found.values()] == expected


def granted(report: NodeUsageReport) -> int:
    return report.containers[0].cards[0].memory_mib


def beside(*processes: Process, namespace: str = "default") -> tuple[NodeUsageReport, dict[str, PodFacts]]:
    """Of a node with processes of a pod that was granted nothing, and the pods by uid."""
    stranger = facts_of(pod().container(), "stranger", namespace)
    owners = {each.pid: owner("stranger") for each in processes}
    return usage([], {"GPU-0": load(*processes)}, owners), {stranger.uid: stranger}


def test_a_pod_on_a_card_that_it_was_not_granted_is_one_misuse_with_all_of_its_processes() -> None:
    report, pods = beside(Process(8, 200, 5), Process(7, 100, 5))
    (found,) = misuses(report, pods, frozenset()).values()
    assert (found.title, found.card, found.reason, found.used_mib) == ("default/stranger", 0, "CardNotGranted", 300)
    assert found.sentence == (
        "process 7 and 1 more of the pod uses 300 MiB of card 0, and its container was granted nothing of it: remove"
        " what brings it there, such as NVIDIA_VISIBLE_DEVICES in its image, or request a card"
    )


def test_a_container_beside_the_one_with_the_card_is_a_misuse_too() -> None:
    tenants = [tenant(tensorflow(**SHARE), apps=["tensorflow", "beside"])]
    report = usage(tenants, {"GPU-0": load(Process(7, 100, 5))}, {7: owner("vcuda", "beside")})
    pods = {each.facts.uid: each.facts for each in tenants}
    assert [each.reason for each in misuses(report, pods, frozenset()).values()] == ["CardNotGranted"]


def test_the_drivers_own_pods_and_processes_outside_of_pods_are_none() -> None:
    report, pods = beside(Process(7, 100, 5), namespace="gpu-operator")
    assert misuses(report, pods, frozenset({"gpu-operator"})) == {}
    assert misuses(report, {}, frozenset()) == {}


class Site:
    """An API server that stores Events, and the reports that write them."""

    def __init__(self, status: int = 201, *, marks: bool = False, exempt: str = "") -> None:
        self.marks = marks
        self.exempt = frozenset(filter(None, [exempt]))
        self.marked: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.status = status
        self.now = NOW

    @asynccontextmanager
    async def reporting(self) -> AsyncIterator[MisuseReports]:
        site = self

        class Handler(JsonHandler):
            def do_POST(self) -> None:  # noqa: N802  (http.server's name)
                site.events.append({**self.asked(), "path": self.path})
                self.answer(site.status, {"message": "no"})

            def do_PATCH(self) -> None:  # noqa: N802  (http.server's name)
                site.marked.append({**self.asked()["metadata"], "path": self.path})
                self.answer(200 if site.status == 201 else site.status, {"message": "no"})

        with listening(Handler) as port:
            calls = ApiCalls(Access("127.0.0.1", port))
            yield MisuseReports(self.never, dict, calls, "gpu1", self.exempt, self.marks, Log(), lambda: site.now)
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
    assert (line["of"], line["mib"], line["why"]) == ("default/vcuda/tensorflow", 9216, "403 no")


async def test_a_misuse_that_lasts_for_three_measurements_marks_its_pod_and_again_every_half_minute() -> None:
    site = Site(marks=True)
    async with site.reporting() as reports:
        for seconds in range(0, 66, 5):
            site.now = NOW + timedelta(seconds=seconds)
            await reports.report(OVER)
    assert [mark["annotations"]["halfcard.dev/card-misuse"][:20] for mark in site.marked] == [
        "2026-11-25T12:00:10Z",
        "2026-11-25T12:00:40Z",
    ]
    assert {(mark["path"], mark["uid"]) for mark in site.marked} == {
        ("/api/v1/namespaces/default/pods/vcuda", "uid-vcuda")
    }
    assert "uses 9216 MiB of card 0" in site.marked[0]["annotations"]["halfcard.dev/card-misuse"]


@pytest.mark.parametrize("site", [Site(marks=False), Site(marks=True, exempt="default")], ids=["off", "exempt"])
async def test_pods_are_marked_by_the_setting_alone_and_not_in_exempt_namespaces(site: Site) -> None:
    async with site.reporting() as reports:
        for _ in range(4):
            await reports.report(OVER)
    assert (len(site.events), site.marked) == (1, [])


async def test_a_mark_that_is_refused_is_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    async with Site(status=403, marks=True).reporting() as reports:
        for _ in range(3):
            await reports.report(OVER)
    *_, line = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["event"], line["why"]) == ("pod not marked for eviction", "403 no")
