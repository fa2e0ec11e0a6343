"""Replicas publish on one Lease, seldom, and lose nothing of each other."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from extender.scheduler_api.contact_log import ContactLog
from extender.scheduler_api.contact_publisher import ContactPublisher
from extender.scheduler_api.scheduler_contact import HandshakeFailure, SchedulerContact, contact_on
from halfcard import names
from kube.api.access import Access
from kube.api.calls import ApiCalls
from tests.kube.object_server import ObjectServer, serving_objects

LEASE: Final = f"/apis/coordination.k8s.io/v1/namespaces/ours/leases/{names.SCHEDULER_CONTACT}"
NOON: Final = datetime(2026, 11, 24, 12, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with serving_objects() as server:
        server.put(LEASE, {"metadata": {"name": names.SCHEDULER_CONTACT, "annotations": {"other": "kept"}}, "spec": {}})
        yield server


class Replica:
    def __init__(self, server: ObjectServer) -> None:
        self.now = NOON
        self.log = ContactLog(lambda: self.now, frozenset, lambda _why: None)
        self.calls = ApiCalls(Access("127.0.0.1", server.port))
        self.publisher = ContactPublisher(self.calls, "ours", self.log)

    async def call(self, **later: float) -> None:
        self.now = NOON + timedelta(**later)
        self.log.asked()
        await self.publisher.publish()


Both = tuple[Replica, Replica]


@pytest.fixture
async def replicas(server: ObjectServer) -> AsyncIterator[Both]:
    both = Replica(server), Replica(server)
    yield both
    for replica in both:
        replica.calls.close()


def trouble(replica: Replica) -> str:
    return replica.publisher.trouble or ""


def published(server: ObjectServer) -> SchedulerContact:
    return contact_on(server.objects[LEASE])


def methods(server: ObjectServer) -> list[str]:
    return [call.method for call in server.calls]


async def test_a_call_is_published_at_once_and_then_once_a_minute(server: ObjectServer, replicas: Both) -> None:
    replica, _ = replicas
    await replica.publisher.publish()
    assert methods(server) == []
    for second in (0, 1, 30, 59):
        await replica.call(seconds=second)
    assert methods(server) == ["GET", "PUT"]
    await replica.call(seconds=61)
    assert methods(server) == ["GET", "PUT"] * 2
    assert published(server).asked == NOON + timedelta(seconds=61)
    assert server.objects[LEASE]["metadata"]["annotations"]["other"] == "kept"


async def test_two_replicas_publish_together_and_write_once_for_the_same(server: ObjectServer, replicas: Both) -> None:
    one, other = replicas
    one.log.failed("10.0.0.1", ConnectionAbortedError())
    await one.call()
    await other.call(seconds=1)
    assert methods(server) == ["GET", "PUT", "GET"]
    other.log.failed("10.0.0.2", ssl.SSLError(1, "?"))
    await other.publisher.publish()
    assert published(server).failed.keys() == {HandshakeFailure.TIMEOUT, HandshakeFailure.OTHER}


async def test_a_lost_call_is_repeated(server: ObjectServer, replicas: Both) -> None:
    replica, _ = replicas
    server.faults = ["refused"]
    await replica.call()
    assert "500" in trouble(replica)
    await replica.publisher.publish()
    assert trouble(replica) == ""
    assert published(server).asked == NOON


async def test_a_missing_lease_is_reported_and_not_created(server: ObjectServer, replicas: Both) -> None:
    del server.objects[LEASE]
    replica, _ = replicas
    await replica.call()
    assert "rbac/extender.yaml" in trouble(replica)
    assert server.objects == {}
