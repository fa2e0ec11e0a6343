"""Creates and deletes hundreds of pods during faults: no card is ever over its capacity, and no pod is lost.

HALFCARD_CHURN_PODS and HALFCARD_CHURN_SEED change the load.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Final

import pytest

from devcluster.control_plane.loader import LoadGenerator
from devcluster.fake_nodes.slow_counting import count_until
from devcluster.services.extender_installation import ExtenderInstallation
from devcluster.services.relay import Relay

from .churn import Churner, machines, overcommitted, take_snapshot
from .fake_pods import count_pods
from .site import Site

PODS: Final = int(os.environ.get("HALFCARD_CHURN_PODS", "600"))
SEED: Final = int(os.environ.get("HALFCARD_CHURN_SEED", "1"))

_LOCAL: Final = "127.0.0.1"
_BETWEEN_CUTS_S: Final = 0.3


@dataclass
class Churn:
    """One load on its own machines."""

    site: Site
    churner: Churner = field(init=False)

    def __post_init__(self) -> None:
        self.churner = Churner(self.site.namespace, self.site.model, SEED)
        self.site.cluster.add_gpu_nodes(machines(self.site.model, PODS))

    @property
    def extender(self) -> ExtenderInstallation:
        return self.site.extender

    def create(self, count: int) -> None:
        LoadGenerator(self.site.cluster).send(self.churner.create(count), what="pods", total=count)

    def create_and_delete(self, count: int) -> None:
        LoadGenerator(self.site.cluster).send(self.churner.create_and_delete(count), what="pods", total=count)

    def burst(self, count: int) -> None:
        """Creates `count` pods at once; on return the scheduler has placed some of them."""
        scheduler = self.site.cluster.components["kube-scheduler"]
        scheduler.pause()
        self.create(count)
        scheduler.resume()
        self.site.cluster.wait_until(lambda: self.scheduled() > count // 5, what="the first pods to have a node")
        assert self.scheduled() < count * 4 // 5

    def scheduled(self) -> int:
        return count_pods(self.site.cluster, self.site.namespace).scheduled

    def check(self) -> None:
        """Checks that all pods that fit are placed, no card is overcommitted, and the extender's state is right."""
        namespace = self.site.namespace
        count_until(
            lambda: take_snapshot(self.site.cluster).wrongly_pending(namespace),
            lambda wrongly_pending: not wrongly_pending,
            what="are pending although a card is free",
            seconds=90,
            say=print,
            details=self.site.cluster.components.log_tails,
        )
        snapshot = take_snapshot(self.site.cluster)
        assert overcommitted(snapshot.of(namespace)) == []
        assert self.scheduled() > PODS // 4
        assert self._names() == self.churner.alive, "no pod is lost"
        self.site.cluster.wait_until(self._inspect_is_right, what="inspect to equal the state of a new extender")

    def _names(self) -> set[str]:
        pods = self.site.cluster.request("GET", self.site.pods).must()["items"]
        return {each["metadata"]["name"] for each in pods}

    def _inspect_is_right(self) -> bool:
        snapshot = take_snapshot(self.site.cluster)
        return {node["name"]: node for node in self.extender.inspect()["nodes"]} == snapshot.inspected()


@pytest.fixture
def churn(site: Site) -> Iterator[Churn]:
    """A load; afterwards its pods are deleted, and one replica leads."""
    made = Churn(site)
    yield made
    site.cluster.request("DELETE", site.pods).must()
    extender = site.extender
    for replica in extender.replicas[1:]:
        extender.kill(replica)
    extender.leader()


def test_pods_are_created_and_deleted_under_load(churn: Churn) -> None:
    churn.create(PODS // 2)
    churn.create_and_delete(PODS // 2)
    churn.check()


def test_every_connection_to_the_api_server_is_cut_repeatedly(churn: Churn) -> None:
    """Watches end in the middle of an event, and the extender does not learn whether a Binding has arrived."""
    extender, relay = churn.extender, Relay(_LOCAL)
    behind = extender.add_replica(access=extender.behind(relay))
    extender.end(extender.replicas[0])
    assert extender.leader() is behind
    churn.burst(PODS // 2)
    with _cutting(relay) as cut:
        churn.create_and_delete(PODS // 4)
    assert sum(cut) > 20
    churn.check()
    assert extender.replicas == [behind] and behind.program.running()
    extender.add_replica()
    extender.kill(behind)
    relay.close()


@contextmanager
def _cutting(relay: Relay) -> Iterator[list[int]]:
    """Cuts all connections every 0.3 s; yields the list of how many were open."""
    stopping, cut = Event(), list[int]()

    def cut_repeatedly() -> None:
        while not stopping.wait(_BETWEEN_CUTS_S):
            cut.append(relay.cut())

    thread = Thread(target=cut_repeatedly)
    thread.start()
    try:
        yield cut
    finally:
        stopping.set()
        thread.join()


def test_the_extender_is_killed_and_the_api_server_is_restarted(churn: Churn) -> None:
    churn.burst(PODS // 2)
    churn.extender.kill(churn.extender.leader())
    churn.extender.add_replica()
    churn.create_and_delete(PODS // 4)
    churn.extender.leader()
    churn.site.cluster.components.restart("kube-apiserver")
    churn.create_and_delete(PODS // 4)
    churn.check()


def test_the_leader_is_killed_and_the_next_leader_hangs(churn: Churn) -> None:
    extender = churn.extender
    extender.add_replica()
    churn.burst(PODS // 2)
    extender.kill(extender.leader())
    churn.create_and_delete(PODS // 4)
    hanging, other = extender.leader(), extender.add_replica()
    hanging.program.pause()
    extender.withdraw(hanging)
    churn.create_and_delete(PODS // 4)
    churn.site.cluster.wait_until(other.leads, what="the other replica to take over", seconds=40)
    hanging.program.resume()
    extender.service.lead_to((hanging.host, hanging.port))
    assert not hanging.leads()
    churn.check()
    assert other.leads()
