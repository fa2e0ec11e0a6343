"""Pods whose count differs from what is stored are found by two lists, and counted again."""

from __future__ import annotations

import asyncio

import pytest

from halfcard.dialects import Dialects
from kube.api.access import Access
from quota import consistency_check
from quota.charged_pods import ChargedPod, ChargedPods
from quota.consistency_check import ConsistencyCheck, Difference, Differences, confirmed, differences, summary
from tests import builders
from tests.kube.node_server import Object, serving
from tests.waiting import until

ONE = ChargedPod("team", "one", {}, {"cores": 30})
TWO = ChargedPod("team", "two", {}, {"cores": 30})


def test_a_pod_whose_count_differs_from_what_is_stored_is_a_difference() -> None:
    moved = TWO._replace(node="n")
    found = differences({"a": ONE, "b": TWO, "c": ONE}, {"b": moved, "c": ONE, "d": TWO})
    assert found == {"a": Difference(ONE, None), "b": Difference(TWO, moved), "d": Difference(None, TWO)}
    assert summary(found) == (
        "1 pod was counted that held nothing any more (team/one), 1 pod was not counted (team/two), "
        "1 pod was counted for something else (team/two); all have been counted again"
    )


def test_only_differences_that_two_comparisons_find_are_confirmed() -> None:
    first = {"a": Difference(ONE, None), "b": Difference(ONE, None), "c": Difference(ONE, None)}
    second = {"a": Difference(ONE, None), "b": Difference(None, ONE), "d": Difference(ONE, None)}
    assert confirmed(first, second) == {"a": Difference(ONE, None)}


def pod(name: str, phase: str = "Running") -> Object:
    return builders.pod(name).created().asks(core=30, memory=20).in_phase(phase).manifest


async def test_changes_that_no_watch_brought_are_found_and_ordinary_changes_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consistency_check, "_REST_S", 0.01)
    monkeypatch.setattr(consistency_check, "_APART_S", 0.01)
    with serving() as server:
        access, repaired = Access("127.0.0.1", server.port), list[Differences]()
        pods = ChargedPods(access, Dialects(), lambda _: None, lambda _: None)
        comparing = ConsistencyCheck(access, pods, Dialects(), lambda: True, repaired.append)
        for name in ("kept", "gone", "over"):
            server.put(pod(name))
        jobs = [asyncio.create_task(pods.informer.run())]
        await until(lambda: pods.all().keys() == {"uid-kept", "uid-gone", "uid-over"})
        jobs.append(asyncio.create_task(comparing.run()))
        with server.changed:  # and no event of it
            del server.nodes["gone"]
            server.nodes |= {"missed": pod("missed"), "over": pod("over", "Succeeded")}
        await until(lambda: bool(repaired))
        assert pods.all().keys() == {"uid-kept", "uid-missed"}
        assert repaired[0].keys() == {"uid-gone", "uid-over", "uid-missed"}
        server.refusal = (403, "no")
        await until(lambda: "403" in comparing.trouble and not comparing.found)
        for job in jobs:
            job.cancel()
        await asyncio.wait(jobs)
