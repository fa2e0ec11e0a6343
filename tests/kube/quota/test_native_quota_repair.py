"""Quotas that count nothing are made to count on the very version that was looked at, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from halfcard import names
from halfcard.dialects import Dialects
from kube.quota.native_quota_repair import Repair, repair, revert
from kube.quota.native_quota_source import path_of
from tests.halfcard.native import quota, read

from ..calling import asked
from ..object_server import Fault, serving_objects

CORE: Final = names.VCUDA_CORE
PATH: Final = path_of("team-a", "gpu")


def repaired(hard: Mapping[str, str], fault: Fault | None = None, *, outrun: bool = False) -> tuple[Repair, Any]:
    """What is said, and the quota by then."""
    with serving_objects() as server:
        server.put(PATH, quota(hard))
        looked_at = read(server.objects[PATH])
        if outrun:
            server.put(PATH, {**server.objects[PATH], "status": {}})
        server.faults += [fault] if fault else []
        said = asked(server.port, lambda calls: repair(calls, looked_at, Dialects()))
        return said, server.objects[PATH]


def test_the_key_that_counts_is_added_with_the_same_amount() -> None:
    said, after = repaired({f"limits.{CORE}": "50", "pods": "3"})
    assert said.done == (f"requests.{CORE}=50 was added: Kubernetes counts only this key",)
    assert not said.why_not
    assert after["spec"]["hard"] == {f"limits.{CORE}": "50", f"requests.{CORE}": "50", "pods": "3"}


def test_a_repair_equals_what_the_webhook_makes() -> None:
    _, after = repaired({CORE: "0.5"})
    assert after["spec"]["hard"] == {CORE: "50", f"requests.{CORE}": "50"}
    assert after["metadata"]["annotations"] == {names.QUOTA_TWINS: f"requests.{CORE}=50"}


def test_invalid_amounts_stay_and_are_named() -> None:
    said, after = repaired({f"limits.{CORE}": "1.005"})
    assert f'spec.hard["limits.{CORE}"]: got "1.005"' in said.why_not
    assert f"requests.{CORE}" not in after["spec"]["hard"]


def test_a_quota_that_was_changed_meanwhile_stays() -> None:
    said, after = repaired({f"limits.{CORE}": "50"}, outrun=True)
    assert "it was changed meanwhile; try again" in said.why_not
    assert f"requests.{CORE}" not in after["spec"]["hard"]


def test_a_refusal_and_a_lost_answer_are_reported() -> None:
    assert "the API server answered 500: no leader" in repaired({f"limits.{CORE}": "50"}, "refused")[0].why_not
    assert "it may or may not be changed by now" in repaired({f"limits.{CORE}": "50"}, "unanswered")[0].why_not


def reverted(hard: Mapping[str, str], marks: str) -> tuple[Repair, Any]:
    with serving_objects() as server:
        item = quota(hard)
        server.put(PATH, {**item, "metadata": {**item["metadata"], "annotations": {names.QUOTA_TWINS: marks}}})
        looked_at = read(server.objects[PATH])
        return asked(server.port, lambda calls: revert(calls, looked_at)), server.objects[PATH]


def test_added_keys_are_removed_again() -> None:
    written = {f"limits.{CORE}": "50", "pods": "3"}
    said, after = reverted({**written, f"requests.{CORE}": "50"}, f"requests.{CORE}=50")
    assert said.done == (f"requests.{CORE}=50 was removed: Halfcard had added it",)
    assert after["spec"]["hard"] == written
    assert names.QUOTA_TWINS not in after["metadata"].get("annotations", {})


def test_keys_that_a_user_changed_since_are_kept() -> None:
    said, after = reverted({f"limits.{CORE}": "50", f"requests.{CORE}": "30"}, f"requests.{CORE}=50")
    assert (said.done, said.why_not) == ((), "")
    assert after["spec"]["hard"][f"requests.{CORE}"] == "30"
