"""All ledgers under one leader: quotas change while pods are counted, and a bug in between loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.quota.ledger import used
from kube.api.access import Access
from kube.api.calls import ApiCalls
from kube.api.informer import follow_jobs
from kube.ledger.ledger_store import LedgerStore
from kube.quota.budget_source import BudgetSource
from quota.charged_pods import ChargedPods, Touched
from quota.ledgers_controller import LedgersController
from serving.log import Log
from tests import builders
from tests.kube.ledger_server import NAMESPACE, LedgerServer, serving_ledgers
from tests.kube.node_server import NodeServer, Object, serving
from tests.waiting import until

LEDGER, OTHER = "gpuquota.team.gpu", "gpuquota.team.other"


def quota(name: str, cores: int) -> Object:
    metadata = {"namespace": "team", "name": name, "uid": f"uid-{name}"}
    return {"kind": "GpuQuota", "metadata": metadata, "spec": {"hard": {"cores": cores}}}


def pod(name: str) -> Object:
    return builders.pod(name).created().asks(core=30, memory=20).manifest


class Scene:
    """Three collections of one cluster, each on a server of its own."""

    def __init__(self, quotas: NodeServer, pods: NodeServer, ledgers: LedgerServer) -> None:
        self.quotas, self.stored, self.ledgers = quotas, pods, ledgers
        self.keeps: list[asyncio.Task[None]] = []
        self.calls = ApiCalls(Access("127.0.0.1", ledgers.port))
        self.source = BudgetSource(Access("127.0.0.1", quotas.port), self._quotas_changed)
        stored = Access("127.0.0.1", pods.port)
        self.pods = ChargedPods(stored, Dialects(), lambda _: None, self._pods_changed)
        self.keeping = LedgersController(
            self.source,
            self.pods,
            LedgerStore(self.calls, NAMESPACE),
            lambda: True,
            Log(),
            freed=lambda _: None,
            repaired=lambda *_: None,
        )

    def _quotas_changed(self) -> None:
        self.keeping.quotas_changed()

    def _pods_changed(self, touched: Touched) -> None:
        self.keeping.pods_changed(touched)

    def used(self) -> int:
        """Nothing before it is there."""
        return used(self.ledgers.ledger(LEDGER)).get("cores", 0) if LEDGER in self.ledgers.there() else 0

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        jobs = [asyncio.create_task(run()) for _, run in (*self.source.jobs(), *follow_jobs([self.pods.informer]))]
        try:
            await asyncio.gather(self.source.wait_until_ready(), self.pods.informer.wait_until_ready())
            yield
        finally:
            self.ledgers.release.set()
            for job in (*jobs, *self.keeps):
                job.cancel()
            await asyncio.wait((*jobs, *self.keeps))
            self.calls.close()

    def keep(self) -> asyncio.Task[None]:
        self.keeps.append(asyncio.create_task(self.keeping.run()))
        return self.keeps[-1]


@contextmanager
def cluster() -> Iterator[tuple[NodeServer, NodeServer, LedgerServer]]:
    with (
        serving(f"{names.QUOTA_API}/{names.GPU_QUOTAS}") as quotas,
        serving("/api/v1/pods") as pods,
        serving_ledgers() as ledgers,
    ):
        yield quotas, pods, ledgers


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    with cluster() as (quotas, pods, ledgers):
        quotas.put(quota("gpu", 100))
        pods.put(pod("one"))
        scene = Scene(quotas, pods, ledgers)
        async with scene.following():
            yield scene


async def test_a_quota_that_changes_while_it_is_counted_counts_its_pods_all_the_time(scene: Scene) -> None:
    scene.keep()
    await until(lambda: scene.used() == 30)
    scene.ledgers.faults.append("held")
    scene.quotas.put(quota("other", 50))
    await until(scene.ledgers.held.is_set)  # its ledger is being made, and then ours is counted as it was before
    scene.stored.put(pod("two"))
    scene.quotas.put(quota("gpu", 90))
    await until(lambda: len(scene.pods.all()) == 2 and scene.source.budgets()[0].hard == {"cores": 90})
    scene.ledgers.release.set()
    await until(lambda: scene.ledgers.ledger(LEDGER).hard == {"cores": 90})
    counted = [used(each).get("cores", 0) for each in scene.ledgers.history(LEDGER)]
    assert counted == sorted(counted)
    assert counted[-1] == 60


async def test_pods_that_a_bug_left_uncounted_are_counted_after_a_restart(
    monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        running = scene.keep()
        await until(lambda: scene.used() == 30)
        broken.setattr(ChargedPods, "counted_pod", bug)
        scene.stored.put(pod("two"))
        await asyncio.wait((running,), timeout=10)
    assert isinstance(running.exception(), ZeroDivisionError)
    scene.keep()
    await until(lambda: scene.used() == 60)
