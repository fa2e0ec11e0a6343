"""Hundreds of pods of every system come and go, and things break: no card is ever over its capacity, no pod is lost.

HALFCARD_CHURN_PODS and HALFCARD_CHURN_SEED choose another load than the usual one.
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

from .churn import Crowd, look, machines, overfull
from .fake_pods import count_pods
from .site import Site

PODS: Final = int(os.environ.get("HALFCARD_CHURN_PODS", "600"))
SEED: Final = int(os.environ.get("HALFCARD_CHURN_SEED", "1"))

_LOCAL: Final = "127.0.0.1"
_BETWEEN_CUTS_S: Final = 0.3


@dataclass
class Churn:
    """One load on machines of its own."""

    site: Site
    crowd: Crowd = field(init=False)

    def __post_init__(self) -> None:
        self.crowd = Crowd(self.site.namespace, self.site.model, SEED)
        self.site.cluster.add_gpu_nodes(machines(self.site.model, PODS))

    @property
    def extender(self) -> ExtenderInstallation:
        return self.site.extender

    def come(self, count: int) -> None:
        LoadGenerator(self.site.cluster).send(self.crowd.come(count), what="pods", total=count)

    def come_and_go(self, count: int) -> None:
        LoadGenerator(self.site.cluster).send(self.crowd.come_and_go(count), what="pods", total=count)

    def burst(self, count: int) -> None:
        """So many at once; on return the scheduler is in the middle of them."""
        scheduler = self.site.cluster.components["kube-scheduler"]
        scheduler.pause()
        self.come(count)
        scheduler.resume()
        self.site.cluster.wait_until(lambda: self.scheduled() > count // 5, what="the first pods to have a node")
        assert self.scheduled() < count * 4 // 5

    def scheduled(self) -> int:
        return count_pods(self.site.cluster, self.site.namespace).scheduled

    def is_well(self) -> None:
        """Everybody who can be placed is; nothing is overfull; the extender knows what a new one would."""
        namespace = self.site.namespace
        count_until(
            lambda: look(self.site.cluster).left_out(namespace),
            lambda left_out: not left_out,
            what="still wait although there is a card",
            seconds=90,
            say=print,
            details=self.site.cluster.components.log_tails,
        )
        seen = look(self.site.cluster)
        assert overfull(seen.of(namespace)) == []
        assert self.scheduled() > PODS // 4
        assert self._there() == self.crowd.alive, "nobody is lost"
        self.site.cluster.wait_until(self._knows_all, what="inspect to be what a new extender would show")

    def _there(self) -> set[str]:
        pods = self.site.cluster.request("GET", self.site.pods).must()["items"]
        return {each["metadata"]["name"] for each in pods}

    def _knows_all(self) -> bool:
        seen = look(self.site.cluster)
        return {node["name"]: node for node in self.extender.inspect()["nodes"]} == seen.inspected()


@pytest.fixture
def churn(site: Site) -> Iterator[Churn]:
    """Afterwards its pods are gone, and one replica leads."""
    made = Churn(site)
    yield made
    site.cluster.request("DELETE", site.pods).must()
    extender = site.extender
    for replica in extender.replicas[1:]:
        extender.kill(replica)
    extender.leader()


def test_pods_are_created_and_deleted_under_load(churn: Churn) -> None:
    churn.come(PODS // 2)
    churn.come_and_go(PODS // 2)
    churn.is_well()


def test_every_connection_to_the_api_server_is_cut_repeatedly(churn: Churn) -> None:
    """Watches end in the middle of an event, and nobody hears whether a Binding has arrived."""
    extender, relay = churn.extender, Relay(_LOCAL)
    behind = extender.add_replica(access=extender.behind(relay))
    extender.end(extender.replicas[0])
    assert extender.leader() is behind
    churn.burst(PODS // 2)
    with _cutting(relay) as cut:
        churn.come_and_go(PODS // 4)
    assert sum(cut) > 20
    churn.is_well()
    assert extender.replicas == [behind] and behind.program.running()
    extender.add_replica()
    extender.kill(behind)
    relay.close()


@contextmanager
def _cutting(relay: Relay) -> Iterator[list[int]]:
    """How many connections were open, each time."""
    stopping, cut = Event(), list[int]()

    def keep_cutting() -> None:
        while not stopping.wait(_BETWEEN_CUTS_S):
            cut.append(relay.cut())

    thread = Thread(target=keep_cutting)
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
    churn.come_and_go(PODS // 4)
    churn.extender.leader()
    churn.site.cluster.components.restart("kube-apiserver")
    churn.come_and_go(PODS // 4)
    churn.is_well()


def test_the_leader_is_killed_and_the_next_leader_hangs(churn: Churn) -> None:
    extender = churn.extender
    extender.add_replica()
    churn.burst(PODS // 2)
    extender.kill(extender.leader())
    churn.come_and_go(PODS // 4)
    hanging, other = extender.leader(), extender.add_replica()
    hanging.program.pause()
    extender.withdraw(hanging)
    churn.come_and_go(PODS // 4)
    churn.site.cluster.wait_until(other.leads, what="the other replica to take over", seconds=40)
    hanging.program.resume()
    extender.service.lead_to((hanging.host, hanging.port))
    assert not hanging.leads()
    churn.is_well()
    assert other.leads()
