"""Halfcard is down, slow or killed: pods without GPU are not affected, and no bad pod is stored."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Final

from devcluster.control_plane.client import ApiResponse
from devcluster.objects import Object
from devcluster.services.installation import Installation
from halfcard import names
from tests import builders

from .hammer import Hammer
from .manifests import bad, complete, plain, resource_quota, resources, share, workload

UNREACHABLE: Final = 'failed calling webhook "validate-pods.halfcard.dev"'
REPAIRED: Final = {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}


def written_out(name: str) -> Object:
    """Returns a pod that needs no repair: Kubernetes itself would accept it."""
    return complete(builders.pod(name).asks(core="30", memory="20"))


@contextmanager
def down(webhook: Installation) -> Iterator[None]:
    """Kills the only replica, and restarts it at the end."""
    program = webhook.replicas[0].program
    program.kill()
    try:
        yield
    finally:
        program.start()
        webhook.cluster.wait_until(webhook.replicas[0].ready, what="the replica to be ready again")


@contextmanager
def slow(webhook: Installation) -> Iterator[None]:
    """Pauses the replica: connections are accepted and not answered."""
    program = webhook.replicas[0].program
    program.pause()
    try:
        yield
    finally:
        program.resume()


def test_while_down_only_gpu_pods_are_refused(webhook: Installation, space: str) -> None:
    with down(webhook):
        webhook.create(space, plain("web")).must()
        for refused in (webhook.create(space, written_out("train")), webhook.create(space, bad("train"))):
            assert refused.status == 500
            assert UNREACHABLE in refused.body["message"]
            assert "connection refused" in refused.body["message"]


def test_while_down_pods_can_be_deleted_and_their_status_changed(webhook: Installation, space: str) -> None:
    webhook.create(space, share("train")).must()
    path = f"/api/v1/namespaces/{space}/pods/train"
    with down(webhook):
        webhook.cluster.client.merge(webhook.cluster.admin, f"{path}/status", {"status": {"message": "seen"}})
        webhook.cluster.request("DELETE", path).must()


def test_while_down_workloads_and_quotas_can_be_created(webhook: Installation, space: str) -> None:
    with down(webhook):
        webhook.create(space, workload("Deployment", "web", plain("web"))).must()
        webhook.create(space, workload("Job", "train", written_out("train"))).must()
        webhook.create(space, resource_quota("gpu", {f"limits.{names.VCUDA_CORE}": "100"})).must()


def test_a_workload_created_while_down_gets_its_pods_afterwards(webhook: Installation, space: str) -> None:
    with down(webhook):
        webhook.create(space, workload("ReplicaSet", "train", written_out("train"))).must()

    def amounts() -> list[object]:
        pods = webhook.cluster.request("GET", f"/api/v1/namespaces/{space}/pods").must()["items"]
        return [resources(pod)["limits"] for pod in pods]

    webhook.cluster.wait_until(lambda: amounts() == [REPAIRED], what="the controller to try again", seconds=60)
    webhook.kubectl(space, "delete", "replicaset", "train")


def test_a_create_with_a_slow_webhook_fails_after_both_timeouts(webhook: Installation, space: str) -> None:
    """The mutating webhook fails open after its timeout, the validating one fails closed after its own."""
    with slow(webhook):
        begin = time.monotonic()
        webhook.create(space, plain("web")).must()
        assert time.monotonic() - begin < 4
        refused = webhook.create(space, written_out("train"))
        assert UNREACHABLE in refused.body["message"]
        assert "context deadline exceeded" in refused.body["message"]
        assert 9 < time.monotonic() - begin < 25


def test_killing_the_webhook_under_load_lets_no_bad_pod_through(webhook: Installation, space: str) -> None:
    program = webhook.replicas[0].program
    items = cycle([share("good"), bad("bad"), share("good"), plain("web")])

    def once() -> ApiResponse:
        return webhook.create(space, next(items), dry_run=True)

    with Hammer(once) as hammer:
        hammer.wait_for(20)
        for _ in range(2):
            program.kill()
            hammer.wait_for(20)
            program.start()
            webhook.cluster.wait_until(webhook.replicas[0].ready, what="the replica to be ready again")
        hammer.wait_for(20)  # calls that began before the restart
        since = len(hammer.answers)
        hammer.wait_for(40)
    passed = [answer.body for answer in hammer.answers if answer.ok]
    assert {pod["metadata"]["name"] for pod in passed} == {"good", "web"}
    assert all(resources(pod)["limits"] == REPAIRED for pod in passed if pod["metadata"]["name"] == "good")
    messages = [str(answer.body.get("message")) for answer in hammer.answers]
    assert any(UNREACHABLE in message for message in messages[:since])
    assert not any(UNREACHABLE in message for message in messages[since:])
