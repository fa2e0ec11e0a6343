"""The chart's own scheduler restarts once for each new CA of the extender, and not for the first one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from certs.chains import ObjectPath, chains
from certs.objects import written
from certs.reconcile import reconcile
from certs.scheduler_restart import SchedulerRestart
from halfcard import names
from serving.log import Log

from .memory_store import MemoryStore, finished

_, EXTENDER = chains(names.NAMESPACE)
PLACE = ObjectPath(f"/apis/apps/v1/namespaces/{names.NAMESPACE}/deployments", names.SCHEDULER)
NOW = datetime(2026, 11, 25, tzinfo=UTC)


class Cluster:
    """The extender's certificates in a store, and the chart's scheduler."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        template = {"metadata": {"annotations": {"other": "stays"}}, "spec": {}}
        self.store.put(PLACE, {"metadata": {"name": names.SCHEDULER}, "spec": {"template": template}})
        self._restart = SchedulerRestart(self.store, names.NAMESPACE, Log())

    def pass_at(self, now: datetime) -> dict[str, str]:
        """Keeps the certificates, then the scheduler; returns the annotations of its pods."""
        finished(reconcile(self.store, EXTENDER, lambda: now))
        return self.look()

    def look(self) -> dict[str, str]:
        finished(self._restart.reconcile())
        found: dict[str, str] = self.store.items[PLACE]["spec"]["template"]["metadata"]["annotations"]
        return found

    def ask(self, annotation: str, now: datetime) -> None:
        self.store.annotate(EXTENDER.leaves[0], annotation, written(now))


def test_its_first_ca_restarts_nothing() -> None:
    cluster = Cluster()
    assert cluster.look() == {"other": "stays"}
    assert cluster.pass_at(NOW) == {"other": "stays"}
    assert names.SCHEDULERS_CA in cluster.store.items[PLACE]["metadata"]["annotations"]


def test_a_new_ca_restarts_it_once_and_the_end_of_the_old_one_does_not() -> None:
    cluster = Cluster()
    cluster.pass_at(NOW)
    cluster.ask(names.NEW_CA_ASKED, NOW + timedelta(minutes=1))
    restarted = cluster.pass_at(NOW + timedelta(minutes=2))
    assert restarted.keys() == {"other", names.SCHEDULERS_CA}
    cluster.ask(names.NEW_LEAF_ASKED, NOW + timedelta(minutes=8))
    for hours in (1, 3):
        assert cluster.pass_at(NOW + timedelta(hours=hours)) == restarted


def test_a_new_certificate_restarts_nothing() -> None:
    cluster = Cluster()
    cluster.pass_at(NOW)
    cluster.ask(names.NEW_LEAF_ASKED, NOW + timedelta(minutes=1))
    assert cluster.pass_at(NOW + timedelta(minutes=2)) == {"other": "stays"}


def test_without_it_nothing_is_written() -> None:
    cluster = Cluster()
    del cluster.store.items[PLACE]
    finished(reconcile(cluster.store, EXTENDER, lambda: NOW))
    writes = cluster.store.writes
    finished(SchedulerRestart(cluster.store, names.NAMESPACE, Log()).reconcile())
    assert cluster.store.writes == writes
