"""Which pods a ResourceQuota counts, as the API server does; tests/cluster/test_native_plugin.py compares with it."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest

from halfcard.quota.native_scopes import ScopeRequirement, holds

from ..native import quota, read, read_pod

ELSEWHERE: Final = {"namespaces": ["b"], "topologyKey": "zone"}
ANYWHERE: Final = {"namespaceSelector": {}, "topologyKey": "zone"}
HERE: Final = {"labelSelector": {}, "topologyKey": "zone"}
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

SIMPLE: Final[dict[str, tuple[str, dict[str, Any], bool]]] = {
    "a deadline": ("Terminating", {"activeDeadlineSeconds": 60}, True),
    "a deadline of now": ("Terminating", {"activeDeadlineSeconds": 0}, True),
    "no deadline": ("Terminating", {}, False),
    "a deadline where none may be": ("NotTerminating", {"activeDeadlineSeconds": 60}, False),
    "none where none may be": ("NotTerminating", {}, True),
    "best effort": ("BestEffort", {"status": {"qosClass": "BestEffort"}}, True),
    "burstable is not best effort": ("BestEffort", {"status": {"qosClass": "Burstable"}}, False),
    "burstable is not-best-effort": ("NotBestEffort", {"status": {"qosClass": "Burstable"}}, True),
    "guaranteed is not-best-effort": ("NotBestEffort", {"status": {"qosClass": "Guaranteed"}}, True),
    "best effort is not the other": ("NotBestEffort", {"status": {"qosClass": "BestEffort"}}, False),
    "an unknown class is not best effort": ("BestEffort", {}, False),
    "and not the other either": ("NotBestEffort", {}, False),
    "no affinity": ("CrossNamespacePodAffinity", {}, False),
    "affinity within the namespace": (
        "CrossNamespacePodAffinity",
        {"affinity": {"podAffinity": {REQUIRED: [HERE]}}},
        False,
    ),
    "affinity to a namespace": (
        "CrossNamespacePodAffinity",
        {"affinity": {"podAffinity": {REQUIRED: [ELSEWHERE]}}},
        True,
    ),
    "anti-affinity to all of them": (
        "CrossNamespacePodAffinity",
        {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": ANYWHERE}]}}},
        True,
    ),
    "a scope of other objects": ("VolumeAttributesClass", {}, False),
}


@pytest.mark.parametrize(("scope", "fields", "expected"), SIMPLE.values(), ids=SIMPLE)
def test_a_scope_matches_the_pods_that_it_names(scope: str, fields: dict[str, Any], *, expected: bool) -> None:
    assert holds(ScopeRequirement(scope), read_pod(**fields)) is expected


CLASSES: Final = [
    ("Exists", None, "high", True),
    ("Exists", None, None, False),
    ("DoesNotExist", None, "high", False),
    ("DoesNotExist", None, None, True),
    ("In", ["high", "low"], "low", True),
    ("In", ["high"], "low", False),
    ("In", ["high"], None, False),
    ("NotIn", ["high"], "low", True),
    ("NotIn", ["high"], "high", False),
    ("NotIn", ["high"], None, True),
]


@pytest.mark.parametrize(("operator", "values", "name", "expected"), CLASSES)
def test_a_priority_class_is_chosen_by_each_operator(
    operator: str, values: list[str] | None, name: str | None, *, expected: bool
) -> None:
    written = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    assert holds(msgspec.convert(written, ScopeRequirement), read_pod(priorityClassName=name)) is expected


def test_all_scopes_of_a_quota_must_match() -> None:
    selector = [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
    narrow = read(quota({}, scopes=["Terminating"], selector=selector))
    assert narrow.counts(read_pod(activeDeadlineSeconds=1, priorityClassName="high"))
    assert not narrow.counts(read_pod(activeDeadlineSeconds=1))
    assert not narrow.counts(read_pod(priorityClassName="high"))
    assert read(quota({})).counts(read_pod())


RELEASED: Final[dict[str, tuple[dict[str, Any], bool]]] = {
    "a pod that runs": ({"status": {"phase": "Running"}}, False),
    "one that succeeded": ({"status": {"phase": "Succeeded"}}, True),
    "one that failed": ({"status": {"phase": "Failed"}}, True),
    "one that is being deleted": (
        {"metadata": {"deletionTimestamp": "1970-01-01T00:16:30Z", "deletionGracePeriodSeconds": 30}},
        False,
    ),
    "one that is stuck in its deletion": (
        {"metadata": {"deletionTimestamp": "1970-01-01T00:16:00Z", "deletionGracePeriodSeconds": 30}},
        True,
    ),
    "one whose deletion knows no grace": ({"metadata": {"deletionTimestamp": "1970-01-01T00:00:00Z"}}, False),
}


@pytest.mark.parametrize(("fields", "expected"), RELEASED.values(), ids=RELEASED)
def test_a_stored_pod_is_charged_until_it_is_over_or_past_its_grace(fields: dict[str, Any], *, expected: bool) -> None:
    assert read_pod(**fields).is_released(now_s=1000) is expected
