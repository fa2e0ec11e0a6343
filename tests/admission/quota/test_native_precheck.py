"""Pods are refused where native quota would refuse them, by a fresh read; unknown state refuses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Final

import pytest

from admission.gates import in_turn
from admission.policy import AdmissionPolicy
from admission.quota.live_quotas import EVERY_S, LiveQuotas
from admission.quota.native_precheck import NativePrecheck
from admission.quota.refusal_events import RefusingQuota
from admission.verdict import ALLOWED, NoRoom, Verdict
from admission.wire import ObjectKind, ReviewRequest
from admission.writes import PodCreate, Write, decode_write
from halfcard.pod.spec import Pod, PodMetadata
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.quota.native_quota_source import NativeQuotas
from tests.builders import Json, gpu, pod_of
from tests.halfcard.native import quota
from tests.kube.node_server import NodeServer, serving
from tests.waiting import until

from ..judging import CORE

CORES: Final = f"requests.{CORE}"
POLICY: Final = AdmissionPolicy()
FULL: Final = quota({CORES: "100"}, {CORES: "80"})
ROOMY: Final = quota({CORES: "200"}, {CORES: "80"})


class Site:
    def __init__(self, server: NodeServer) -> None:
        access = Access("127.0.0.1", server.port)
        self.server = server
        self.known = NativeQuotas(access, POLICY.dialects.resources)
        self.calls = ApiCalls(access)
        self.told: list[tuple[str, str, str, str]] = []
        self.gate = NativePrecheck(self.known, LiveQuotas(self.calls), POLICY, self._refused)

    async def ask(self, obj: Json | None = None, old: Json | None = None, **fields: Any) -> str:
        """Returns the message of the refusal; empty where the pod is admitted."""
        usual: dict[str, Any] = {
            "operation": "CREATE" if old is None else "UPDATE",
            "kind": ObjectKind("Pod"),
            "namespace": "team-a",
            "object": pod_of(gpu()) if obj is None else obj,
            "old_object": old,
        }
        write = decode_write(ReviewRequest("1", **(usual | fields)), POLICY)
        verdict = ALLOWED if write is None else await self.gate(write, ALLOWED, inf)
        return "" if verdict.no_room is None else verdict.no_room.message

    def _refused(self, quota: RefusingQuota, namespace: str, pod: PodMetadata, message: str) -> None:
        self.told.append((quota.reference["name"], namespace, pod.title, message))

    def says_to_readers_alone(self, item: Json) -> None:
        """Changes the quota for reads only: the watch lags behind."""
        with self.server.changed:
            self.server.nodes[item["metadata"]["name"]] = item


@asynccontextmanager
async def site_of(*quotas: Json) -> AsyncIterator[Site]:
    with serving() as server:
        for item in quotas:
            server.put(item)
        site = Site(server)
        following = asyncio.create_task(site.known.informer.run())
        await site.known.informer.wait_until_ready()
        yield site
        following.cancel()
        await asyncio.wait((following,))
        site.calls.close()


async def test_a_pod_beyond_the_quota_is_refused() -> None:
    async with site_of(FULL) as site:
        assert f"exceeded quota: team-a/gpu, requested: {CORES}=30, used: {CORES}=80" in await site.ask()
        assert await site.ask(dry_run=True) == await site.ask()


async def test_the_first_quota_that_refuses_a_pod_is_reported_except_in_a_dry_run() -> None:
    async with site_of(ROOMY | {"metadata": {**ROOMY["metadata"], "name": "another"}}, FULL) as site:
        await site.ask(dry_run=True)
        assert site.told == []
        message = await site.ask()
        assert site.told == [("gpu", "team-a", "train", message)]


OWN: Final = {**FULL, "metadata": {**FULL["metadata"], "namespace": "kube-system", "name": "own"}}


@pytest.mark.parametrize(
    "fields",
    [
        {"namespace": "team-b"},
        {"namespace": "kube-system"},
        {"sub_resource": "resize", "operation": "UPDATE", "old_object": pod_of(gpu())},
        {"kind": ObjectKind("Binding")},
        {"operation": "DELETE"},
    ],
    ids=str,
)
async def test_writes_that_are_not_charged_pass_without_a_read(fields: dict[str, Any]) -> None:
    async with site_of(FULL, OWN) as site:
        lists = site.server.lists()
        assert await site.ask(**fields) == ""
        assert site.server.lists() == lists


async def test_a_pod_that_fits_by_the_watch_passes_without_a_read() -> None:
    async with site_of(ROOMY) as site:
        lists = site.server.lists()
        assert await site.ask() == ""
        assert site.server.lists() == lists


async def test_a_quota_that_was_just_raised_refuses_no_pod() -> None:
    async with site_of(FULL) as site:
        site.says_to_readers_alone(ROOMY)
        assert await site.ask() == ""


async def test_no_pod_is_refused_by_a_read_that_began_before_its_call() -> None:
    async with site_of(FULL) as site:
        assert "exceeded" in await site.ask()
        site.says_to_readers_alone(ROOMY)
        assert await site.ask() == ""


async def test_concurrent_calls_share_one_read() -> None:
    async with site_of(FULL) as site:
        assert "exceeded" in await site.ask()
        lists = site.server.lists()
        answers = await asyncio.gather(*[site.ask() for _ in range(100)])
        assert all("exceeded" in answer for answer in answers)
        assert site.server.lists() == lists + 1


async def test_successive_calls_wait_between_reads() -> None:
    async with site_of(FULL) as site:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(4):
            assert "exceeded" in await site.ask()
        assert loop.time() - began >= 3 * EVERY_S


async def test_where_the_read_is_refused_the_plugin_decides() -> None:
    async with site_of(FULL) as site:
        site.server.refusal = (403, "no")
        assert await site.ask() == ""


async def test_where_the_read_takes_too_long_the_plugin_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admission.quota.live_quotas._TIMEOUT_S", 0.0)

    async with site_of(FULL) as site:
        assert await site.ask() == ""


async def test_before_quotas_have_been_listed_the_plugin_decides() -> None:
    with serving() as server:
        server.put(FULL)
        assert await Site(server).ask() == ""


async def test_an_added_changed_or_removed_quota_applies_from_then_on() -> None:
    async with site_of() as site:
        assert await site.ask() == ""
        site.server.put(FULL)
        await until(lambda: bool(site.known.of("team-a")))
        assert "exceeded" in await site.ask()
        site.server.put(quota({f"limits.{CORE}": "1"}))
        await until(lambda: len(site.known.uncounted()) == 1)
        site.server.put(quota({"pods": "1"}))
        await until(lambda: not site.known.of("team-a"))
        assert not site.known.uncounted()
        site.server.put(FULL)
        await until(lambda: bool(site.known.of("team-a")))
        site.server.delete("gpu")
        await until(lambda: not site.known.of("team-a"))
        assert not site.known.namespaces()


async def test_a_malformed_quota_affects_only_itself() -> None:
    odd = {"metadata": {"name": "odd", "namespace": "team-a"}, "spec": {"hard": 7}}

    async with site_of(odd, FULL) as site:
        assert [each.title for each in site.known.of("team-a")] == ["team-a/gpu"]


async def test_a_stored_pod_is_charged_by_another_quota_once_it_gets_a_deadline() -> None:
    plain, ending = pod_of(gpu()), pod_of(gpu(), activeDeadlineSeconds=60)

    async with site_of(
        quota({CORES: "0"}, {CORES: "0"}, scopes=["Terminating"]), quota({CORES: "0"}, {CORES: "0"}, name="all")
    ) as site:
        said = await site.ask(ending, plain)
        assert "team-a/gpu" in said and "team-a/all" not in said
        assert await site.ask(plain, ending) == ""
        assert await site.ask(ending, ending) == ""
        assert "team-a/all" in await site.ask(plain)


async def test_no_gate_is_called_after_one_that_refuses() -> None:
    refusal, asked = Verdict(no_room=NoRoom("full")), []

    async def refuses(_write: Write, _verdict: Verdict, _until: float) -> Verdict:
        asked.append("refuses")
        return refusal

    async def passes(_write: Write, verdict: Verdict, _until: float) -> Verdict:
        asked.append("passes")
        return verdict

    assert await in_turn(passes, refuses, passes)(PodCreate(ReviewRequest("1"), Pod()), ALLOWED, inf) == refusal
    assert asked == ["passes", "refuses"]
