"""Pods that no scheduler tries get an Event with the reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

import extender.refused.untried_pods
from extender.refused.untried_pods import UntriedPods
from kube.api.access import Access
from kube.api.calls import ApiCalls
from serving.log import Log
from tests.builders import pod
from tests.kube.listening import JsonHandler, listening

from ..populated import state_of, stored

CREATED: Final = "2026-11-25T12:00:00Z"
LATER: Final = datetime(2026, 11, 25, 12, 5, tzinfo=UTC)
SHARE: Final = pod("share").asks(core=50, memory=20).specified(schedulerName="volcano")


class Site:
    """An API server with these pods, and the Events that were written there."""

    def __init__(self, *pods: Any) -> None:
        self.state = state_of([], [stored(each) for each in pods])
        self.pods = [{**each.manifest, "metadata": {**each.manifest["metadata"], **_meta(each)}} for each in pods]
        self.selectors: list[str] = []
        self.events: dict[str, dict[str, Any]] = {}
        self.tries: list[str] = []
        self.status = 201
        self.now = LATER

    @contextmanager
    def serving(self) -> Iterator[UntriedPods]:
        site = self

        class Handler(JsonHandler):
            def do_GET(self) -> None:  # noqa: N802  (http.server's name)
                site.selectors.append(self.path)
                self.answer(200, {"metadata": {"resourceVersion": "1"}, "items": site.pods})

            def do_POST(self) -> None:  # noqa: N802  (http.server's name)
                body = self.asked()
                name = body["metadata"]["name"]
                site.tries.append(body["involvedObject"]["name"])
                self.answer(409 if name in site.events else site.status, {"message": "no"})
                site.events.setdefault(name, body)

        with listening(Handler) as port:
            access = Access("127.0.0.1", port)
            calls = ApiCalls(access)
            served = frozenset({"default-scheduler"})
            yield UntriedPods(access, self.state, calls, Log(), served, lambda: True, lambda: self.now)
            calls.close()


def _meta(built: Any) -> dict[str, str]:
    name = built.manifest["metadata"]["name"]
    return {"uid": name, "namespace": "ns", "creationTimestamp": CREATED}


async def test_the_event_names_the_scheduler_and_those_that_give_cards() -> None:
    site = Site(SHARE)
    with site.serving() as untried:
        await untried.report()
    (event,) = site.events.values()
    assert (event["reason"], event["involvedObject"]["uid"]) == ("NoScheduler", "share")
    assert event["message"] == (
        'no scheduler has tried this pod since 2026-11-25T12:00:00Z: spec.schedulerName: got "volcano"; Halfcard gives'
        " cards to pods of default-scheduler; create the pod again with that name, or start volcano"
    )


async def test_the_api_server_selects_pods_without_a_node_and_of_other_schedulers() -> None:
    site = Site()
    with site.serving() as untried:
        await untried.report()
    assert "fieldSelector=spec.nodeName%3D%2Cspec.schedulerName%21%3Ddefault-scheduler" in site.selectors[0]


async def test_a_pod_that_requests_no_card_gets_no_event() -> None:
    site = Site(SHARE, pod("plain").container().specified(schedulerName="volcano"))
    with site.serving() as untried:
        await untried.report()
    assert site.tries == ["share"]


async def test_those_that_were_reported_longest_ago_come_first_in_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender.refused.untried_pods, "_AT_ONCE", 2)
    pods = [pod(name).asks(core=50, memory=20).specified(schedulerName="volcano") for name in "abc"]
    site = Site(*pods)
    with site.serving() as untried:
        for _ in range(3):
            await untried.report()
            site.now += timedelta(minutes=1)
    assert site.tries[:5] == ["a", "b", "c", "a", "b"]


async def test_a_refused_event_is_logged_and_an_existing_one_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(SHARE)
    site.status = 403
    with site.serving() as untried:
        await untried.report()
        await untried.report()
    (line,) = capsys.readouterr().err.splitlines()
    assert (json.loads(line)["pod"], json.loads(line)["why"]) == ("share", "403 no")


async def test_a_server_that_does_not_answer_ends_the_round_with_a_log_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Site().serving() as untried:
        pass
    await untried.report()
    assert "are not reported" in capsys.readouterr().err
