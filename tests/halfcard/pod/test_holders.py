from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from halfcard.pod.holders import BUILT_IN, WELL_KNOWN, HeldPod, held_pods, known_kind

HOLDERS = {**WELL_KNOWN, **BUILT_IN}
CONTAINER = {"name": "c"}


def found(obj: Any, *paths: str) -> list[tuple[str, str]]:
    """Returns where each pod is, and how a container of it is named there."""
    return [(each.path(""), each.path("spec.containers[0].image")) for each in held_pods(obj, paths)]


@pytest.mark.parametrize(
    ("value", "container"),
    [
        ({"spec": {"containers": [CONTAINER]}}, "a.spec.containers[0].image"),
        ({"metadata": {}}, "a.spec.containers[0].image"),  # a template without a spec
        ({"containers": [CONTAINER]}, "a.containers[0].image"),
        ({"volumes": [], "metadata": {}}, "a.containers[0].image"),
        ({"resources": {}}, "a.image"),
        ({"spec": {}, "containers": []}, "a.spec.containers[0].image"),  # `containers` hides no template
    ],
)
def test_what_is_at_a_path_decides_what_it_is(value: Any, container: str) -> None:
    assert found({"a": value}, "a") == [("a", container)]


def test_a_star_is_every_member_and_every_item() -> None:
    obj = {"roles": {"ps": {"template": {"spec": {}}}, "worker": {"template": {"spec": {}}}}, "tasks": [{}, {"t": {}}]}
    assert [where for where, _ in found(obj, "roles.*.template", "tasks.*.t")] == [
        "roles.ps.template",
        "roles.worker.template",
        "tasks[1].t",
    ]


@pytest.mark.parametrize("obj", [{}, {"a": None}, {"a": {}}, {"a": {"b": None}}, {"a": []}])
def test_nothing_is_found_where_nothing_is(obj: Any) -> None:
    assert found(obj, "a.*.c") == []


@pytest.mark.parametrize(
    ("obj", "why"), [({"a": [1]}, "Expected `object`, got `array` - at `$.a`"), ({"a": "x"}, "got `str` - at `$.a`")]
)
def test_a_field_on_the_way_that_can_hold_nothing_is_a_mistake(obj: Any, why: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=re.escape(why)):
        found(obj, "a.b")


def test_a_pointer_leads_to_the_same_field_as_the_path() -> None:
    held = HeldPod(("a", 0), ("spec", "containers", 0), {})
    assert held.pointer(("spec", "containers", 0, "resources")) == ("a", 0, "resources")
    assert held.pointer(("metadata", "labels")) == ("a", 0, "metadata", "labels")


@pytest.mark.parametrize(
    ("group", "kind", "known"),
    [
        ("apps", "Deployment", "apps/Deployment"),
        ("", "Deployment", "apps/Deployment"),
        ("", "PodTemplate", "PodTemplate"),
        ("batch", "Job", "batch/Job"),
        ("batch.volcano.sh", "Job", "batch.volcano.sh/Job"),
        ("serving.knative.dev", "Service", "serving.knative.dev/Service"),
        ("", "Service", None),
        ("example.com", "Deployment", None),
    ],
)
def test_a_kind_is_known_by_its_group(group: str, kind: str, known: str | None) -> None:
    assert known_kind(HOLDERS, group, kind) == known


@pytest.mark.parametrize("key", WELL_KNOWN)
def test_a_well_known_kind_has_a_group_and_paths_of_plain_fields(key: str) -> None:
    assert re.fullmatch(r"[a-z0-9.-]+\.[a-z]+/[A-Z][A-Za-z]+", key)
    assert WELL_KNOWN[key]
    assert all(re.fullmatch(r"[A-Za-z]+(\.([A-Za-z]+|\*))*", path) for path in WELL_KNOWN[key])
