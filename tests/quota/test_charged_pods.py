"""What is known of the stored pods that hold something, or wait."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from halfcard import names
from halfcard.capacity import CapacityRules
from halfcard.dialects import Dialects
from halfcard.quota.budgets import deleted_budget
from halfcard.quota.ledger import Entry
from kube.api.access import Access
from quota.charged_pods import ChargedPods
from quota.node_locations import NodeLocations
from quota.usage_index import CountedPod
from tests import builders
from tests.kube.node_server import Object, serving
from tests.waiting import until

BUDGET = deleted_budget("gpuquota.team.gpu")._replace(uid="q", hard={"cores": 100})


DELETED: dict[str, Any] = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
GONE_BY = datetime(2026, 1, 1, 0, 1, tzinfo=UTC).timestamp()


def node(name: str, ready: str) -> Object:
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


async def test_a_pod_that_hangs_in_deletion_is_charged_only_while_its_node_answers() -> None:
    answering = {"alive"}
    touched: list[object] = []
    with serving() as server:
        access = Access("127.0.0.1", server.port)
        pods = ChargedPods(access, Dialects(), lambda _: None, touched.append, answering.__contains__)
        for on in ("alive", "dead"):
            share = builders.pod(on).created(**DELETED).asks(core=30, memory=20).on(on)
            server.put(share.manifest)
        server.put(builders.pod("kept").created().asks(core=30, memory=20).on("dead").manifest)
        following = asyncio.create_task(pods.informer.run())
        await until(lambda: len(pods.all()) == 3)
        touched.clear()

        def charged() -> set[str]:
            return {
                name for name in ("alive", "dead", "kept") if pods.counted_pod(f"uid-{name}", BUDGET, lambda _: True)
            }

        pods.review(GONE_BY)
        assert charged() == {"alive", "dead", "kept"}
        pods.review(GONE_BY + 1)
        assert charged() == {"alive", "kept"} and touched == [{"team": {"uid-dead"}}]
        pods.review(GONE_BY + 2)
        assert len(touched) == 1
        answering.add("dead")
        pods.review(GONE_BY + 3)
        assert charged() == {"alive", "dead", "kept"} and len(touched) == 2
        answering.clear()
        server.delete("dead")
        await until(lambda: len(pods.all()) == 2)
        pods.review(GONE_BY + 4)
        assert charged() == {"kept"}
        following.cancel()
        await asyncio.wait([following])


async def test_a_node_answers_while_it_is_there_and_ready() -> None:
    changes: list[None] = []
    with serving() as server:
        nodes = NodeLocations(Access("127.0.0.1", server.port), CapacityRules(), lambda: changes.append(None))
        server.put(node("n", "True"))
        following = asyncio.create_task(nodes.informer.run())
        await until(lambda: nodes.answers("n"))
        for ready in ("Unknown", "True", "False"):
            before = len(changes)
            server.put(node("n", ready))
            await until(lambda before=before: len(changes) > before)  # type: ignore[misc]  # its type is not inferred
            assert nodes.answers("n") is (ready == "True")
        server.put(node("n", "True"))
        await until(lambda: nodes.answers("n"))
        server.delete("n")
        await until(lambda: not nodes.answers("n"))
        following.cancel()
        await asyncio.wait([following])


def pod(name: str, *gates: str) -> Object:
    share = builders.pod(name).created().asks(core=30, memory=20)
    return share.gated(*gates).manifest


async def test_a_gated_pod_has_no_charge_and_returned_pods_are_a_copy() -> None:
    with serving() as server:
        pods = ChargedPods(Access("127.0.0.1", server.port), Dialects(), lambda _: None, lambda _: None)
        server.put(pod("waits", names.QUOTA_GATE))
        server.put(pod("runs"))
        following = asyncio.create_task(pods.informer.run())
        await until(lambda: len(pods.all()) == 2)
        entry = Entry("team", "runs", {"cores": 30, "memory": 5120, "shares": 1})
        assert pods.counted_pod("uid-runs", BUDGET, lambda _: True) == CountedPod(entry)
        assert pods.counted_pod("uid-runs", BUDGET, lambda _: False) is None
        assert pods.counted_pod("uid-waits", BUDGET, lambda _: True) is None
        seen = pods.waiting()
        assert seen.keys() == {"uid-waits"}
        server.delete("waits")
        await until(lambda: not pods.waiting())
        assert seen.keys() == {"uid-waits"}
        following.cancel()
        await asyncio.wait([following])
