from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard import names
from halfcard.added_resources import says, written
from halfcard.dialects import Dialects
from halfcard.pod.request_totals import pod_cost
from halfcard.pod.requests import LIMITS, read_pod
from halfcard.pod.slot_resources import slots_due
from tests.builders import PodBuilder, pod

DIALECTS: Final = Dialects()
SLOTTED: Final = frozenset({names.VOLCANO_GPU_MEMORY})


def due(built: PodBuilder, slotted: frozenset[str] = SLOTTED) -> dict[str, int]:
    """The slot resources by container."""
    asked = read_pod(built.read, DIALECTS)
    slots = slots_due(asked, slotted)
    return {each.place.container.name: number for each, number in zip(asked, slots, strict=True)}


def test_containers_are_numbered_and_those_without_such_a_resource_get_none() -> None:
    built = pod().asks(gpu_memory=2048).asks(cpu="1").asks(gpu_memory=2048).init(gpu_memory=1024).sidecar(core="30")
    assert due(built) == {
        "containers-0": 1,
        "containers-1": 0,
        "containers-2": 2,
        "initContainers-0": 3,
        "initContainers-1": 0,
    }


def test_requests_are_enough_and_zero_requests_nothing() -> None:
    built = pod().container(requests={names.VOLCANO_GPU_MEMORY: "1"}).asks(gpu_memory=0)
    assert due(built) == {"containers-0": 1, "containers-1": 0}


def test_a_resource_with_its_own_device_ids_needs_no_slots() -> None:
    assert set(due(pod().asks(core="30", memory="20").asks(gpu_mem=3)).values()) == {0}
    assert set(due(pod().asks(gpu_memory=2048), frozenset()).values()) == {0}


steps = st.sampled_from(["asks", "init", "sidecar"])
amounts = st.sampled_from([{"gpu_memory": 512}, {"gpu_memory": 2048}, {"core": "30"}, {}])


@given(st.lists(st.tuples(steps, amounts), max_size=8))
def test_no_two_containers_of_a_pod_request_as_many_slots(containers: list[tuple[str, dict[str, int | str]]]) -> None:
    built = pod()
    for step, asked in containers:
        built = getattr(built, step)(**asked)
    found = [slots for slots in due(built).values() if slots]
    assert len(found) == len(set(found)) == sum("gpu_memory" in asked for _, asked in containers)


@pytest.mark.parametrize("text", ["2", " 2 ", "2000m", "2e0"])
def test_any_spelling_of_the_number_matches(text: str) -> None:
    assert says(text, 2)


@pytest.mark.parametrize(("text", "slots"), [("3", 2), ("2500m", 2), ("x", 2), ("", 2), (None, 2), ("1", 0)])
def test_another_number_does_not_match(text: str | None, slots: int) -> None:
    assert not says(text, slots)


@pytest.mark.parametrize("text", [None, "0"])
def test_an_absent_number_and_0_mean_no_slots(text: str | None) -> None:
    assert says(text, 0)


def test_a_number_is_read_like_a_text() -> None:
    (asked,) = read_pod(pod().container(limits={names.SLOT: 2}).read, DIALECTS)
    assert written(asked, LIMITS, names.SLOT) == "2"


def test_a_slot_is_no_gpu_and_is_not_charged() -> None:
    built = pod().container(limits={names.SLOT: "1", names.VOLCANO_GPU_MEMORY: "2048"})
    assert names.SLOT not in DIALECTS.resources
    assert pod_cost(built.read, DIALECTS.resources).keys() == {names.VOLCANO_GPU_MEMORY}
