"""Which nodes have `nvidia.com/gpu` of a driver of Dynamic Resource Allocation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names
from halfcard.dra.driver_nodes import DeviceClass, DriverNodes, Published, ResourceSlice
from tests.builders import device_class, resource_slice


def read(obj: dict[str, Any]) -> Published:
    kinds: dict[str, type[Published]] = {"DeviceClass": DeviceClass, "ResourceSlice": ResourceSlice}
    return msgspec.convert(obj, kinds[obj["kind"]])


def nodes_of(*objects: dict[str, Any]) -> DriverNodes:
    found = DriverNodes()
    for each in objects:
        found.put(read(each))
    return found


@pytest.mark.parametrize(
    ("expression", "drivers"),
    [
        ("device.driver == 'gpu.nvidia.com'", {"gpu.nvidia.com"}),
        ('device.driver=="a.example.com" || device.driver == "b.example.com"', {"a.example.com", "b.example.com"}),
        ("device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'", {"gpu.nvidia.com"}),
        ("device.driver.startsWith('gpu')", set()),  # its drivers cannot be listed
        ("other.device.driver2 == 'x'", set()),
        ("", set()),
    ],
)
def test_a_class_selects_the_drivers_that_its_expressions_name(expression: str, drivers: set[str]) -> None:
    found = read(device_class("gpu.nvidia.com", expression))
    assert isinstance(found, DeviceClass) and found.drivers == drivers


def test_a_class_without_selectors_selects_no_driver_by_name() -> None:
    assert msgspec.convert({"metadata": {"name": "any"}, "spec": {}}, DeviceClass).drivers == frozenset()


def test_a_node_with_slices_of_a_driver_whose_class_offers_the_resource_is_the_drivers() -> None:
    found = nodes_of(device_class(), resource_slice("dra1"))
    assert (found.driver("dra1"), found.driver("cpu1")) == ("gpu.nvidia.com", "")


@pytest.mark.parametrize(
    "objects",
    {
        "a slice of a network card": (device_class(), resource_slice("dra1", driver="nic.example.com")),
        "a class without the resource": (device_class(resource=None), resource_slice("dra1")),
        "a class with another resource": (device_class(resource="example.com/gpu"), resource_slice("dra1")),
        "devices of no single node": (device_class(), resource_slice(None)),
        "no class": (resource_slice("dra1"),),
        "no slice": (device_class(),),
    }.items(),
    ids=lambda item: item[0],
)
def test_no_other_node_is_a_drivers(objects: tuple[str, tuple[dict[str, Any], ...]]) -> None:
    assert nodes_of(*objects[1]).driver("dra1") == ""


_OBJECTS = st.lists(
    st.one_of(
        st.builds(
            lambda name, resource: device_class(name, resource=resource),
            st.sampled_from("ab"),
            st.sampled_from([names.NVIDIA_GPU, None]),
        ),
        st.builds(resource_slice, st.sampled_from(["n1", "n2", None]), name=st.sampled_from("xyz")),
    ),
    max_size=8,
)


@given(_OBJECTS, _OBJECTS)
def test_what_is_updated_by_events_equals_what_is_built_from_the_objects(
    put: list[dict[str, Any]], dropped: list[dict[str, Any]]
) -> None:
    by_events, left = DriverNodes(), dict[tuple[str, str], dict[str, Any]]()
    for each in put:
        by_events.put(read(each))
        by_events.driver("n1")  # what is asked in between changes nothing
        left[each["kind"], each["metadata"]["name"]] = each
    for each in dropped:
        by_events.drop(read(each))
        left.pop((each["kind"], each["metadata"]["name"]), None)
    rebuilt = DriverNodes()
    for kind in (DeviceClass, ResourceSlice):
        rebuilt.replace(kind, [read(each) for each in left.values() if each["kind"] == kind.__name__])
    assert [by_events.driver(node) for node in ("n1", "n2")] == [rebuilt.driver(node) for node in ("n1", "n2")]
