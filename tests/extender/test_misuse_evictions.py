"""Pods that an agent has marked are evicted while they misuse cards, whatever their disruption budgets say."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest

from extender.misuse_evictions import MisuseEvictions, is_fresh
from halfcard import names
from halfcard.pod.stored_pod import StoredPod
from kube.api.access import Access
from kube.api.calls import ApiCalls
from serving.background_jobs import run_in_background
from serving.log import Log
from tests.kube.listening import JsonHandler, listening
from tests.waiting import until

NOW: Final = datetime(2026, 11, 25, 12, tzinfo=UTC)
MARK: Final = "2026-11-25T12:00:00Z container a uses 9216 MiB of card 0, and was granted 1024 MiB"
POD: Final = "/api/v1/namespaces/team/pods/greedy"


def marked(mark: str = MARK, *, node: str = "gpu1", phase: str = "Running", **metadata: Any) -> StoredPod:
    meta = {"name": "greedy", "namespace": "team", "uid": "u-1", "annotations": {names.MISUSE: mark}, **metadata}
    return msgspec.convert({"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": phase}}, StoredPod)


class Site:
    """An API server that answers by method, and what was sent to it."""

    def __init__(self, answers: Mapping[str, int] | None = None, *, leads: bool = True) -> None:
        self.answers = {"POST": 201, "DELETE": 200, **(answers or {})}
        self.leads = leads
        self.calls: list[tuple[str, str, Any]] = []

    @asynccontextmanager
    async def evicting(self) -> AsyncIterator[MisuseEvictions]:
        site = self

        class Handler(JsonHandler):
            def do_POST(self) -> None:  # noqa: N802 - the name is http.server's
                site.calls.append((self.command, self.path, self.asked()))
                self.answer(site.answers[self.command], {"message": "no"})

            do_DELETE = do_POST  # noqa: N815 - the name is http.server's

        with listening(Handler) as port:
            calls = ApiCalls(Access("127.0.0.1", port))
            evictions = MisuseEvictions(calls, Log(), lambda: self.leads, frozenset({"gpu-operator"}), lambda: NOW)
            async with run_in_background([("evict", evictions.run)], Log()):
                yield evictions
            calls.close()


async def evicted(site: Site, found: StoredPod) -> list[tuple[str, str, Any]]:
    """Returns the calls for a pod: those before the calls for another one, which must be evicted."""
    async with site.evicting() as evictions:
        evictions.observe(found)
        await until(lambda: not evictions._marked)
        evictions.observe(marked(uid="u-2", name="other"))
        await until(lambda: any("/other" in path for _, path, _ in site.calls))
    return [call for call in site.calls if "/other" not in call[1]]


async def test_a_marked_pod_is_evicted_by_its_uid() -> None:
    ((method, path, body),) = await evicted(Site(), marked())
    assert (method, path) == ("POST", f"{POD}/eviction")
    assert (body["metadata"]["name"], body["deleteOptions"]["preconditions"]) == ("greedy", {"uid": "u-1"})


async def test_a_disruption_budget_does_not_keep_it() -> None:
    _, (method, path, body) = await evicted(Site({"POST": 429}), marked())
    assert (method, path, body["preconditions"]) == ("DELETE", POD, {"uid": "u-1"})


LEFT_ALONE: Final = {
    "without a mark": marked(""),
    "with an old mark": marked("2026-11-25T11:57:59Z misuse"),
    "with a mark of the future": marked("2026-11-25T12:02:01Z misuse"),
    "with a mark that is no time": marked("soon"),
    "without a node": marked(node=""),
    "that has ended": marked(phase="Failed"),
    "that is being deleted": marked(deletionTimestamp="2026-11-25T11:59:00Z"),
    "of an exempt namespace": marked(namespace="gpu-operator"),
}


@pytest.mark.parametrize("left", LEFT_ALONE.values(), ids=LEFT_ALONE.keys())
async def test_no_other_pod_is_evicted(left: StoredPod) -> None:
    assert await evicted(Site(), left) == []


async def test_only_the_leader_evicts() -> None:
    site = Site(leads=False)
    async with site.evicting() as evictions:
        evictions.observe(marked())
        await until(lambda: not evictions._marked)
        site.leads = True
        evictions.observe(marked(uid="u-2", name="other"))
        await until(lambda: bool(site.calls))
    assert [path for _, path, _ in site.calls] == ["/api/v1/namespaces/team/pods/other/eviction"]


@pytest.mark.parametrize(
    ("answers", "event"),
    [({}, "evicted"), ({"POST": 404}, None), ({"POST": 409}, None), ({"POST": 403}, "not evicted")],
    ids=["done", "gone", "another pod of that name", "no right"],
)
async def test_the_log_says_what_was_done(
    answers: Mapping[str, int], event: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    await evicted(Site(answers), marked())
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines if line["pod"] == "team/greedy"] == ([event] if event else [])


def test_a_mark_is_fresh_for_two_minutes() -> None:
    assert is_fresh(MARK, NOW + timedelta(seconds=119)) and not is_fresh(MARK, NOW + timedelta(seconds=120))
    assert not is_fresh("2026-11-25T12:00:00 no zone", NOW)
