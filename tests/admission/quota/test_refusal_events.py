"""Refusals are reported at the quota, and at the owner of the controller that creates the pods."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from admission.quota.refusal_events import RefusalEvents
from halfcard.pod.spec import OwnerReference, PodMetadata
from halfcard.quota.budgets import Budget, deleted_budget
from kube.api.access import Access
from kube.api.calls import ApiCalls
from serving.log import Log
from tests.kube.object_server import Object, ObjectServer, serving_objects
from tests.waiting import until

BUDGET: Final[Budget] = deleted_budget("gpuquota.team.gpu")._replace(uid="q")
SET: Final = OwnerReference("apps/v1", "ReplicaSet", "web-1", "u-set", controller=True)
OF_SET: Final = PodMetadata(generate_name="web-1-", owner_references=[SET])
TOP: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u-web", "controller": True}
PATH: Final = "/apis/apps/v1/namespaces/team/replicasets/web-1"


def owned(uid: str = "u-set", **owner: object) -> Object:
    """Returns the stored ReplicaSet."""
    return {"metadata": {"name": "web-1", "uid": uid, "ownerReferences": [{**TOP, **owner}] if owner else []}}


def events(server: ObjectServer) -> dict[str, tuple[int, str]]:
    """Returns count and last message of each Event, by the kind of its object."""
    found = [each for path, each in server.objects.items() if "/events/" in path]
    return {each["involvedObject"]["kind"]: (each["count"], each["message"]) for each in found}


async def written(
    refused: Callable[[RefusalEvents], None], stored: Object, expected: Mapping[str, tuple[int, str]]
) -> ObjectServer:
    """Waits until the Events of these refusals are the expected ones."""
    with serving_objects() as server:
        server.put(PATH, stored)
        calls = ApiCalls(Access("127.0.0.1", server.port))
        reporter = RefusalEvents(calls, "replica", lambda: datetime.now(UTC), Log(), every_s=0.01)
        job = asyncio.create_task(reporter.run())
        refused(reporter)
        await until(lambda: events(server) == expected)
        job.cancel()
        await asyncio.wait([job])
        calls.close()
        return server


def twice(reporter: RefusalEvents) -> None:
    for message in ("one", "two"):
        reporter.refused(BUDGET, "team", OF_SET, message)


QUOTA: Final = (2, "team/web-1-*: two")


async def test_the_event_of_a_deployment_has_the_count_and_the_last_message() -> None:
    above = (2, "pods of web-1: two")
    server = await written(twice, owned(controller=True), {"GpuQuota": QUOTA, "Deployment": above})
    assert sum(call.path == PATH for call in server.calls) == 1


async def test_a_replica_set_without_owner_gets_no_event() -> None:
    await written(twice, owned(), {"GpuQuota": QUOTA})


async def test_a_new_replica_set_of_the_same_name_is_another_object() -> None:
    await written(twice, owned("u-other", controller=True), {"GpuQuota": QUOTA})


STATEFUL: Final = OwnerReference("apps/v1", "StatefulSet", "s", "u", controller=True)


async def test_the_owner_of_other_controllers_is_not_looked_up() -> None:
    pods = [
        PodMetadata(name="p"),
        PodMetadata(name="q", owner_references=[STATEFUL]),
    ]

    def refused(reporter: RefusalEvents) -> None:
        for pod in pods:
            reporter.refused(BUDGET, "team", pod, "no")

    server = await written(refused, owned(controller=True), {"GpuQuota": (2, "team/q: no")})
    assert not [call for call in server.calls if "events" not in call.path]
