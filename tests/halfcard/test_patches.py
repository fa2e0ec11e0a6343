from __future__ import annotations

import copy
from typing import Any, Final

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names
from halfcard.patches import (
    PatchOperation,
    Pointer,
    apply,
    as_json,
    field_path,
    from_field_path,
    from_json,
    json_pointer,
    value_at,
)

keys = st.text(max_size=6) | st.sampled_from([names.VCUDA_CORE, "~", "/", "~1", "~0/", "", "a b", "ü"])
POINTERS: Final[dict[str, tuple[Pointer, str]]] = {
    "the whole object": ((), ""),
    "fields and positions": (("spec", "containers", 0, "resources"), "/spec/containers/0/resources"),
    "a slash": (("limits", names.VCUDA_CORE), "/limits/" + names.VCUDA_CORE.replace("/", "~1")),
    "a tilde": (("a~b",), "/a~0b"),
    "what looks escaped already": (("~1", "~0"), "/~01/~00"),
    "an empty key": (("", "a"), "//a"),
    "the end of a list": (("spec", "tolerations", "-"), "/spec/tolerations/-"),
}


@pytest.mark.parametrize(("pointer", "text"), POINTERS.values(), ids=POINTERS)
def test_a_pointer_is_escaped(pointer: Pointer, text: str) -> None:
    assert json_pointer(pointer) == text


@given(st.lists(keys, max_size=5))
def test_another_implementation_reads_the_same_parts(parts: list[str]) -> None:
    assert jsonpointer.JsonPointer(json_pointer(tuple(parts))).parts == parts


@given(st.lists(keys, min_size=1, max_size=4), st.integers())
def test_another_implementation_finds_the_same_place(parts: list[str], value: int) -> None:
    obj: Any = value
    for part in reversed(parts):
        obj = {part: obj}
    assert jsonpointer.resolve_pointer(obj, json_pointer(tuple(parts))) == value
    assert value_at(obj, tuple(parts)) == value


def test_an_operation_has_only_the_fields_of_its_kind() -> None:
    changes = [
        PatchOperation("add", ("a",), None),
        PatchOperation("replace", ("b", 1), "x"),
        PatchOperation("remove", ("c",), "ignored"),
    ]
    assert as_json(changes) == [
        {"op": "add", "path": "/a", "value": None},
        {"op": "replace", "path": "/b/1", "value": "x"},
        {"op": "remove", "path": "/c"},
    ]


@given(st.sampled_from(["add", "replace", "remove"]), st.lists(keys, max_size=4), st.integers())
def test_a_change_is_read_back_from_its_json(op: Any, parts: list[str], value: int) -> None:
    change = PatchOperation(op, tuple(parts), None if op == "remove" else value)
    assert from_json(change.as_json()) == change


# --- applying ---------------------------------------------------------------------------------------------------------

OBJECT: Final[dict[str, Any]] = {
    "metadata": {"annotations": {"a/b": "1", "a~b": "2"}},
    "spec": {"containers": [{"name": "one"}, {"name": "two", "env": [{"name": "A"}]}], "host": None},
}
CHANGES: Final = {
    "a new member": PatchOperation("add", ("metadata", "labels"), {"x": "y"}),
    "a member that is there": PatchOperation("add", ("spec", "host"), "h"),
    "a replaced key with a slash": PatchOperation("replace", ("metadata", "annotations", "a/b"), "3"),
    "a removed key with a tilde": PatchOperation("remove", ("metadata", "annotations", "a~b")),
    "a field in a list": PatchOperation("add", ("spec", "containers", 0, "env"), [{"name": "B"}]),
    "the end of a list": PatchOperation("add", ("spec", "containers", 1, "env", "-"), {"name": "B"}),
    "between two of a list": PatchOperation("add", ("spec", "containers", 1), {"name": "between"}),
    "before the first of a list": PatchOperation("add", ("spec", "containers", 0), {"name": "first"}),
    "one of a list": PatchOperation("replace", ("spec", "containers", 1), {"name": "other"}),
    "out of a list": PatchOperation("remove", ("spec", "containers", 0)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_applying_agrees_with_another_implementation_and_leaves_the_object_alone(change: PatchOperation) -> None:
    given_obj = copy.deepcopy(OBJECT)
    expected = jsonpatch.apply_patch(copy.deepcopy(OBJECT), [change.as_json()])
    assert apply(given_obj, [change]) == expected != OBJECT
    assert apply(given_obj, [from_json(change.as_json())]) == expected
    assert given_obj == OBJECT


def test_changes_are_applied_in_their_order() -> None:
    changes = [
        PatchOperation("add", ("a",), {}),
        PatchOperation("add", ("a", "b"), 1),
        PatchOperation("replace", ("a", "b"), 2),
    ]
    assert apply({}, changes) == {"a": {"b": 2}}


# --- looking ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pointer",
    [
        ("nothing",),
        ("metadata", "annotations", "a"),
        ("spec", "containers", 2),
        ("spec", "containers", "-"),
        ("spec", "host", "x"),
    ],
)
def test_an_absent_path_has_no_value(pointer: Pointer) -> None:
    assert value_at(OBJECT, pointer) is None


@pytest.mark.parametrize("number", [1, "1"])
def test_a_position_may_be_a_number_or_its_text(number: str | int) -> None:
    assert value_at(OBJECT, ("spec", "containers", number, "name")) == "two"


FIELDS: Final[dict[Pointer, str]] = {
    ("spec", "containers", 0, "resources"): "spec.containers[0].resources",
    ("spec", "containers", "0", "name"): "spec.containers[0].name",
    ("limits", names.VCUDA_CORE): f'limits["{names.VCUDA_CORE}"]',
    ("spec", "tolerations", "-"): "spec.tolerations[-]",
    ("metadata", "annotations", "a~b"): 'metadata.annotations["a~b"]',
}


@pytest.mark.parametrize(("pointer", "path"), FIELDS.items())
def test_a_field_is_named_as_kubernetes_names_it(pointer: Pointer, path: str) -> None:
    assert field_path(pointer) == path


@given(st.lists(st.integers(0, 99) | st.sampled_from(["spec", "a.b/c", "a[0]", "-", "é", "a b"]), max_size=5))
def test_a_field_path_is_read_back(parts: list[str | int]) -> None:
    assert from_field_path(field_path(tuple(parts))) == tuple(parts)
