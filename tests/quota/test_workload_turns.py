"""The turns of workloads, as their pods come and go."""

from __future__ import annotations

from typing import Any, Final

import pytest

from halfcard.dialects import Dialects
from halfcard.quota.turns import Member, Place, Turn, Workload
from quota.charged_pods import read_charged_pod
from quota.workload_turns import WorkloadTurns
from tests import builders

WEB: Final = Workload("team", "Deployment", "web")


def member(revision: str, created: str) -> Member:
    return Member(revision, created, created, {"cores": 100})


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_each_pod_of_a_rollout_takes_the_turn_of_one_that_left() -> None:
    """Whatever came later, the whole rollout is before it."""
    known = WorkloadTurns(Clock())
    for name in "abc":
        known.put(name, WEB, member("v1", "10"))
    for number, name in enumerate("abc"):
        known.drop(name, is_deleted=True)
        replacement = member("v2", f"{20 + number}")
        assert known.of(WEB, {"new": replacement})["new"] == Turn("10", Place.INHERITED)
        known.put(f"new-{name}", WEB, replacement)
        known.put(f"new-{name}", WEB, replacement)
    assert known.of(WEB, {"more": member("v2", "30")})["more"] == Turn("30")


def test_a_pod_that_is_deleted_and_created_again_and_again_is_one_pod() -> None:
    known = WorkloadTurns(Clock())
    known.put("0", WEB, member("v1", "10"))
    for number in range(5):
        known.drop(f"{number}", is_deleted=True)
        known.put(f"{number + 1}", WEB, member("v1", "20"))
    assert known.of(WEB, {"more": member("v1", "30")})["more"] == Turn("30")


@pytest.mark.parametrize("ending", ["it ended", "it was missing in a list", "long ago"])
def test_a_pod_that_is_not_replaced_leaves_no_turn(ending: str) -> None:
    clock = Clock()
    known = WorkloadTurns(clock)
    known.put("a", WEB, member("v1", "10"))
    if ending == "it was missing in a list":
        known.keep(())
    else:
        known.drop("a", is_deleted=ending == "long ago")
    clock.now_s = 4000
    known.forget_old()
    assert known.of(WEB, {"new": member("v2", "20")})["new"] == Turn("20")


def test_a_restored_rollout_goes_on_where_it_was() -> None:
    """The turn that `new-a` took, `b` that was deleted before, and `c` that was deleted meanwhile."""
    known, again = WorkloadTurns(Clock()), WorkloadTurns(Clock())
    for name in "abc":
        known.put(name, WEB, member("v1", "10"))
    known.drop("a", is_deleted=True)
    known.put("new-a", WEB, member("v2", "20"))
    known.drop("b", is_deleted=True)
    again.put("new-a", WEB, member("v2", "20"))
    assert again.of(WEB, {"new": member("v2", "30")})["new"] == Turn("30")
    again.restore(known.kept(lambda _namespace: True))
    for name in ("new-b", "new-c"):
        assert again.of(WEB, {"new": member("v2", "30")})["new"] == Turn("10", Place.INHERITED)
        again.put(name, WEB, member("v2", "30"))
    assert again.of(WEB, {"more": member("v2", "40")})["more"] == Turn("40")


def test_pods_that_came_before_the_turns_were_restored_take_those_that_left() -> None:
    known, again = WorkloadTurns(Clock()), WorkloadTurns(Clock())
    known.put("a", WEB, member("v1", "10"))
    known.drop("a", is_deleted=True)
    again.put("new-a", WEB, member("v2", "20"))
    again.restore(known.kept(lambda _namespace: True))
    assert again.of(WEB, {"more": member("v2", "30")})["more"] == Turn("30")


def test_only_namespaces_of_interest_are_kept() -> None:
    known, other = WorkloadTurns(Clock()), Workload("other", "Deployment", "web")
    for uid, workload in {"a": WEB, "b": WEB, "c": other}.items():
        known.put(uid, workload, member("v1", "10"))
    known.drop("b", is_deleted=True)
    kept = known.kept(lambda namespace: namespace == "team")
    assert ([*kept.held], [each.workload for each in kept.left]) == (["a"], [WEB])


def owned(kind: str, name: str, **labels: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": True}
    return {"ownerReferences": [owner], "labels": labels}


OWNERS: Final[dict[str, tuple[dict[str, Any], Workload | None, str]]] = {
    "of a Deployment": (
        owned("ReplicaSet", "web-5d4f", **{"pod-template-hash": "5d4f"}),
        Workload("team", "Deployment", "web"),
        "5d4f",
    ),
    "of a ReplicaSet alone": (owned("ReplicaSet", "web"), Workload("team", "ReplicaSet", "web"), ""),
    "of a StatefulSet": (
        owned("StatefulSet", "db", **{"controller-revision-hash": "db-1"}),
        Workload("team", "StatefulSet", "db"),
        "db-1",
    ),
    "without a controller": ({}, None, ""),
}


@pytest.mark.parametrize(("metadata", "workload", "revision"), OWNERS.values(), ids=OWNERS)
def test_the_workload_and_the_revision_of_a_pod(
    metadata: dict[str, Any], workload: Workload | None, revision: str
) -> None:
    pod = builders.pod("p").created(**metadata).asks(core=30, memory=20).stored
    found = read_charged_pod(pod, Dialects())
    assert found is not None and (found.workload, found.revision) == (workload, revision)
