"""Slots on a real API server: only Halfcard writes them, and no quota counts them."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from devcluster.control_plane.users import User
from devcluster.objects import Object
from devcluster.services.installation import OFFERED, Installation
from halfcard import names
from tests.builders import pod

from .manifests import complete, resource_quota, resources, workload

MIB: Final = {OFFERED: "2048"}


def shared_pod(name: str, **more: str) -> Object:
    limits = {**MIB, **more}
    return complete(pod(name).container(limits=limits).container("initContainers", limits=limits))


def slot_numbers(stored: Object) -> list[Any]:
    """Returns the slot numbers of the app container and the init container; limits and requests are equal."""
    found = [resources(stored), resources(stored, "initContainers")]
    assert all(each["limits"].get(names.SLOT) == each["requests"].get(names.SLOT) for each in found)
    return [each["limits"].get(names.SLOT) for each in found]


@pytest.fixture
def tenant(webhook: Installation, space: str) -> User:
    return webhook.cluster.tenant(space, "alice")


def test_each_container_gets_its_own_slot_number(webhook: Installation, space: str, tenant: User) -> None:
    assert slot_numbers(webhook.create(space, shared_pod("p"), user=tenant).must()) == ["1", "2"]


def test_a_slot_number_that_a_tenant_wrote_is_corrected(webhook: Installation, space: str, tenant: User) -> None:
    assert slot_numbers(webhook.create(space, shared_pod("p", **{names.SLOT: "7"}), user=tenant).must()) == ["1", "2"]


def test_the_same_file_applies_a_second_time(webhook: Installation, space: str) -> None:
    for _ in range(2):
        done = webhook.kubectl(space, "apply", "-f-", item=shared_pod("p"))
        assert done.code == 0, done.stderr
    assert slot_numbers(webhook.get(space, "pod", "p")) == ["1", "2"]


def test_an_update_without_the_slot_number_gets_it_back(webhook: Installation, space: str) -> None:
    """Without it Kubernetes would refuse the update: resources of a pod cannot change."""
    stored = webhook.create(space, shared_pod("p")).must()
    del stored["metadata"]["resourceVersion"]  # the scheduler has changed the pod since
    for container in (*stored["spec"]["containers"], *stored["spec"]["initContainers"]):
        for side in ("limits", "requests"):
            del container["resources"][side][names.SLOT]
    done = webhook.kubectl(space, "replace", "-f-", item=stored)
    assert done.code == 0, done.stderr
    assert slot_numbers(webhook.get(space, "pod", "p")) == ["1", "2"]


def test_pods_of_a_controller_get_slot_numbers_and_its_template_does_not(webhook: Installation, space: str) -> None:
    stored = webhook.create(space, workload("ReplicaSet", "r", shared_pod("p"))).must()
    assert names.SLOT not in json.dumps(stored)
    pods = f"/api/v1/namespaces/{space}/pods"
    webhook.cluster.wait_until(lambda: webhook.cluster.request("GET", pods).must()["items"], what="the pod")
    assert slot_numbers(webhook.cluster.request("GET", pods).must()["items"][0]) == ["1", "2"]


def test_slots_are_not_charged_to_a_quota(webhook: Installation, space: str) -> None:
    webhook.create(space, resource_quota("q", {f"requests.{OFFERED}": "4096"})).must()
    webhook.create(space, shared_pod("p")).must()
    used = webhook.get(space, "resourcequota", "q")["status"]["used"]
    assert used == {f"requests.{OFFERED}": "2048"}


def test_a_pod_without_slot_numbers_is_refused(webhook: Installation, space: str, tenant: User) -> None:
    with webhook.without("mutating"):
        refused = webhook.create(space, shared_pod("p"), user=tenant)
    assert refused.status == 403
    assert f"is missing; only Halfcard sets the number of {names.SLOT}" in refused.body["message"]
    assert f"add {names.SLOT}: 2 [HC015]" in refused.body["message"]
