"""Nodes whose `nvidia.com/gpu` comes from a driver of Dynamic Resource Allocation, beside nodes with cards of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from devcluster.objects import Object
from halfcard import names
from tests.builders import device_class, pod, resource_slice

from .site import Site, annotations_of, node_of

_API: Final = "/apis/resource.k8s.io/v1"
_DRIVER: Final = "gpu.nvidia.com"


@pytest.fixture
def driver_node(site: Site) -> Iterator[str]:
    """A node with two devices; no other node of the site has a card."""
    cluster, name = site.cluster, f"dra-{site.model.lower()}"
    cluster.add_node(name, {}, {names.NVIDIA_LABEL_PRODUCT: site.model})
    published = {"deviceclasses": device_class(), "resourceslices": resource_slice(name, devices=("gpu-0", "gpu-1"))}
    for kind, obj in published.items():
        cluster.request("POST", f"{_API}/{kind}", obj).must()
    cluster.wait_until(lambda: site.extender.inspect(name).get("driver") == _DRIVER, what="the driver to be known")
    yield name
    for kind, obj in published.items():  # other tests share the scheduler
        cluster.request("DELETE", f"{_API}/{kind}/{obj['metadata']['name']}").must()


def claims(site: Site) -> list[Object]:
    found: Any = site.cluster.request("GET", f"{_API}/namespaces/{site.namespace}/resourceclaims").must()
    return list(found["items"])


def test_whole_cards_are_bound_to_a_node_of_a_driver_with_the_devices_of_its_claim(
    site: Site, driver_node: str
) -> None:
    first, second = (site.place(pod(name).asks(gpu=1)) for name in ("a", "b"))
    assert {node_of(first), node_of(second)} == {driver_node}
    assert names.PLACEMENT not in {*annotations_of(first), *annotations_of(second)}
    allocated = {
        each["status"]["reservedFor"][0]["name"]: each["status"]["allocation"]["devices"]["results"][0]["device"]
        for each in claims(site)
    }
    assert allocated.keys() == {"a", "b"} and {*allocated.values()} == {"gpu-0", "gpu-1"}
    site.create(pod("c").asks(gpu=1))
    assert "cannot allocate all claims" in site.wait_for_refusal("c")
    site.delete("a", force=True)  # no kubelet ends it
    assert node_of(site.wait_until_bound("c")) == driver_node
    assert [*site.extender.inspect(driver_node)["without_card"]] == [f"{site.namespace}/{name}" for name in "bc"]


@pytest.mark.usefixtures("driver_node")
def test_what_only_halfcard_can_judge_does_not_go_to_a_node_of_a_driver(site: Site) -> None:
    """The scheduler has a device for the count; HAMi's memory it refuses by itself, though it does not count it."""
    site.create(pod("choosy").asks(gpu=1).annotated({names.ASK_MODEL: "T4"}))
    assert "given out whole by a driver of Dynamic Resource Allocation" in site.wait_for_refusal("choosy")
    site.create(pod("share").asks(gpu=1, gpumem=3000))
    assert "cannot fit resource" in site.wait_for_refusal("share")
