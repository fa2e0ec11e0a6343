"""What is known of the stored pods that hold something, or wait."""

from __future__ import annotations

import asyncio

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.quota.budgets import deleted_budget
from halfcard.quota.ledger import Entry
from kube.api.access import Access
from quota.charged_pods import ChargedPods
from quota.usage_index import CountedPod
from tests import builders
from tests.kube.node_server import Object, serving
from tests.waiting import until

BUDGET = deleted_budget("gpuquota.team.gpu")._replace(uid="q", hard={"cores": 100})


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
