"""The Events of pods that wait for room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from kube.api.access import Access
from kube.api.calls import ApiCalls
from quota.gates.waiting_reports import WaitingReason, WaitingReports
from quota.reporting.quota_events import QuotaEvents
from tests.kube.object_server import ObjectServer, serving_objects


@dataclass
class Site:
    server: ObjectServer
    reports: WaitingReports
    now_s: float = 0.0

    async def write(self, messages: dict[str, str]) -> int:
        """Reports until nothing is due; returns the number of writes."""
        self.reports.update({f"uid-{pod}": WaitingReason("team", pod, message) for pod, message in messages.items()})
        before = self._writes()
        while True:
            so_far = self._writes()
            await self.reports.report()
            if self._writes() == so_far:
                return so_far - before

    def _writes(self) -> int:
        return sum(call.method != "GET" for call in self.server.calls)

    def events(self) -> dict[str, Any]:
        """Returns message and count of the only Event of each pod."""
        found = [each for each in self.server.objects.values() if each["reason"] == "WaitsForQuota"]
        assert len({each["involvedObject"]["uid"] for each in found}) == len(found)
        return {each["involvedObject"]["name"]: (each["message"], each["count"]) for each in found}


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    with serving_objects() as server:
        calls = ApiCalls(Access("127.0.0.1", server.port))
        found = Site(server, WaitingReports(QuotaEvents(calls), lambda: True, lambda: found.now_s))
        yield found
        calls.close()


async def test_every_pod_that_waits_has_one_event_which_is_changed_when_its_reason_changes(site: Site) -> None:
    pods = {f"p{number}": "behind pod team/first" for number in range(120)}
    assert await site.write({"first": "next in the queue", **pods}) == 121
    assert site.events() == {"first": ("next in the queue", 1)} | {pod: (pods[pod], 1) for pod in pods}
    assert await site.write({**pods, "p0": "next in the queue"}) == 1
    assert site.events()["p0"] == ("next in the queue", 2)


async def test_the_event_of_a_pod_is_repeated_before_the_api_server_deletes_it(site: Site) -> None:
    assert await site.write({"p": "why"}) == 1
    site.now_s = 1000
    assert await site.write({"p": "why"}) == 0
    site.now_s = 3000
    assert await site.write({"p": "why"}) == 1


async def test_the_event_of_a_pod_whose_name_is_as_long_as_possible_is_written(site: Site) -> None:
    assert await site.write({"a" * 199 + "." + "b" * 53: "why"}) == 1
    (path,) = site.server.objects
    name = path.rpartition("/")[2]
    assert len(name) <= 253 and ".." not in name


async def test_an_event_that_the_api_server_refuses_is_tried_again_after_a_while(site: Site) -> None:
    site.server.faults += ["refused", "refused"]
    site.reports.update({"uid-p": WaitingReason("team", "p", "why")})
    await site.reports.report()
    assert "the API server answered 500" in site.reports.trouble
    assert await site.write({"p": "why"}) == 0
    site.now_s = 30
    assert await site.write({"p": "why"}) == 1
