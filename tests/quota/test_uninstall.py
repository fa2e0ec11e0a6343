"""Gated pods at the removal of Halfcard: they are released or deleted, and other pods are not changed."""

from __future__ import annotations

import io
from typing import Any, Final

import pytest

from halfcard import names
from kube.api.calls import ApiCalls
from quota.uninstall import finish
from serving.log import Log
from tests import builders
from tests.kube.calling import asked
from tests.kube.object_server import ObjectServer, serving_objects

_LIST: Final = "/api/v1/pods?fieldSelector=status.phase%3DPending&limit=500"
_NEXT: Final = f"{_LIST}&continue=more%2F"


def pod(name: str, *gates: str) -> dict[str, Any]:
    return builders.pod(name).created("a", uid=name, resourceVersion="").gated(*gates).manifest


def keep(server: ObjectServer, *pods: dict[str, Any]) -> None:
    """On two pages, and by themselves; the pages go on showing them."""
    for each in pods:
        server.put(f"/api/v1/namespaces/a/pods/{each['metadata']['name']}", each)
    server.put(_LIST, {"metadata": {"continue": "more/"}, "items": [*pods[:1]]})
    server.put(_NEXT, {"metadata": {}, "items": [*pods[1:]]})


def leaving(server: ObjectServer, way: str) -> int:
    async def run(calls: ApiCalls) -> int:
        return await finish(calls, way, Log(stream=io.StringIO()), rest_s=0)

    return asked(server.port, run)


@pytest.mark.parametrize("way", ["open", "delete"])
def test_only_pods_behind_our_gate_are_opened_or_deleted(way: str) -> None:
    with serving_objects() as server:
        keep(server, pod("ours", names.QUOTA_GATE), pod("free"), pod("theirs", "example.com/other"))
        leaving(server, way)
        found = {path.rpartition("/")[2]: item for path, item in server.objects.items() if "/namespaces/" in path}
    assert "schedulingGates" not in found.pop("ours", {"spec": {}})["spec"]
    assert ("ours" in {each.path.rpartition("/")[2] for each in server.calls if each.method == "DELETE"}) == (
        way == "delete"
    )
    assert [item["spec"]["schedulingGates"] for item in found.values()] == [[], [{"name": "example.com/other"}]]


def test_it_retries_after_a_missing_answer_and_says_how_many_pods_still_wait() -> None:
    with serving_objects() as server:
        keep(server, pod("ours", names.QUOTA_GATE))
        server.faults = ["refused", "unanswered"]
        assert leaving(server, "open") == 1


def test_without_gated_pods_it_ends_at_once() -> None:
    with serving_objects() as server:
        keep(server, pod("free"))
        assert leaving(server, "delete") == 0
        assert {each.method for each in server.calls} == {"GET"}
