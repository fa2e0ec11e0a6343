"""Containers get slots where the node offers their resource only as a total; the agent identifies them by these."""

from __future__ import annotations

from typing import Any, Final

import pytest

from admission.policy import AdmissionPolicy
from admission.policy_settings import policy_of
from admission.verdict import Verdict
from halfcard import names
from settings.installation import read_settings
from tests.builders import Json, container, gpu, pod_of

from .judging import amounts, changed, judge, mutate, mutated, operations, patched, validate

MEMORY, SLOT = names.VOLCANO_GPU_MEMORY, names.SLOT
SLOTTED: Final = AdmissionPolicy(slotted=frozenset({MEMORY}))


def share(mib: str = "2048", slots: str | None = None) -> Json:
    """Returns the pod after the API server's defaults."""
    asked = {MEMORY: mib, **({} if slots is None else {SLOT: slots})}
    return container(asked, dict(asked))


def made(obj: Json, policy: AdmissionPolicy = SLOTTED) -> Json:
    return mutated(obj, policy=policy)


def slots(obj: Json, number: int = 0, field: str = "containers") -> list[Any]:
    """Returns the number of slots under limits and under requests."""
    found = amounts(obj, number, field)
    return [found[side].get(SLOT) for side in ("limits", "requests")]


# --- what is added


@pytest.mark.parametrize(
    "each", [share(), container({MEMORY: "2048"}), container(None, {MEMORY: 2048}), container({MEMORY: "2Ki"}, {})]
)
def test_a_container_gets_slots_on_both_sides_however_it_asks(each: Json) -> None:
    after = made(pod_of(each))
    assert slots(after) == ["1", "1"]
    assert amounts(after)["limits"].keys() == amounts(after)["requests"].keys() == {MEMORY, SLOT}


def test_no_two_containers_of_a_pod_get_the_same_number() -> None:
    after = made(pod_of(share(), gpu(), share("1024"), init=[share(), container()]))
    assert [slots(after), slots(after, 2), slots(after, 0, "initContainers")] == [["1"] * 2, ["2"] * 2, ["3"] * 2]
    assert slots(after, 1) == [None, None]
    assert "resources" not in after["spec"]["initContainers"][1]


def test_no_slots_are_added_where_nodes_do_not_offer_them() -> None:
    assert slots(made(pod_of(share()), AdmissionPolicy())) == [None, None]


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        ({}, None),
        ({"node_resources": [names.VOLCANO_GPU_MEMORY]}, "1"),
        ({"node_resources": [names.ALIYUN_GPU_MEM]}, None),
        ({"node_resources": [names.ALIYUN_GPU_MEM], "aliyun_memory_unit": "MiB"}, "1"),
    ],
)
def test_the_settings_say_which_resources_have_ids_and_which_need_slots(raw: Json, wanted: str | None) -> None:
    resource = raw.get("node_resources", [MEMORY])[0]
    after = made(pod_of(container({resource: "3"}, {resource: "3"})), policy_of(read_settings(raw)))
    assert slots(after) == [wanted, wanted]


def test_a_container_that_another_webhook_takes_away_or_adds_changes_the_numbers_of_the_others() -> None:
    once = made(pod_of(share("1024"), share(), share("512")))
    fewer = changed(once, "spec", "containers", to=once["spec"]["containers"][1:])
    assert [slots(made(fewer), 0), slots(made(fewer), 1)] == [["1"] * 2, ["2"] * 2]
    more = changed(once, "spec", "containers", to=[share(), *once["spec"]["containers"]])
    assert [slots(made(more), number)[0] for number in range(4)] == ["1", "2", "3", "4"]


def test_slots_are_removed_when_another_webhook_removes_the_resource() -> None:
    once = made(pod_of(share(), gpu()))
    plain = changed(once, "spec", "containers", 0, "resources", to={"limits": {SLOT: "1"}, "requests": {SLOT: "1"}})
    assert amounts(made(plain)) == {"limits": {}, "requests": {}}


@pytest.mark.parametrize("written", ["5", "0", "x"])
def test_an_amount_that_a_user_writes_is_corrected_with_a_warning(written: str) -> None:
    verdict = mutate(pod_of(share(slots=written)), policy=SLOTTED)
    assert slots(patched(pod_of(share(slots=written)), verdict)) == ["1", "1"]
    assert verdict.warnings == (f"spec.containers[0] {SLOT}: {written} became 1: only Halfcard sets it",)


def test_a_pod_without_other_requests_loses_its_slots() -> None:
    only_slots = pod_of(container({SLOT: "1"}, {SLOT: "1"}))
    assert amounts(made(only_slots, AdmissionPolicy())) == {"limits": {}, "requests": {}}


# --- an object that comes back


def test_an_update_keeps_its_numbers() -> None:
    before = pod_of(share())
    assert mutate(before, old=before, policy=SLOTTED) == validate(before, old=before, policy=SLOTTED) == Verdict()


def test_the_same_file_applies_a_second_time_with_slots_of_other_numbers() -> None:
    stored = made(pod_of(share(slots="7")), AdmissionPolicy(slotted=frozenset({MEMORY})))
    stored = changed(stored, "spec", "containers", 0, "resources", "limits", SLOT, to="7")
    stored = changed(stored, "spec", "containers", 0, "resources", "requests", SLOT, to="7")
    again = mutate(pod_of(share()), old=stored, policy=SLOTTED)
    assert amounts(patched(pod_of(share()), again)) == amounts(stored)


# --- what is refused


@pytest.mark.parametrize(
    ("obj", "where", "got", "fix"),
    [
        (pod_of(share()), "containers[0]", None, f"add {SLOT}: 1"),
        (pod_of(share(slots="1"), share(slots="1")), "containers[1]", "1", "use 2, or leave it to the webhook"),
        (pod_of(share(slots="5")), "containers[0]", "5", "use 1, or leave it to the webhook"),
        (pod_of(container({SLOT: "1"})), "containers[0]", "1", "remove it, or leave it to the webhook"),
        (
            pod_of(share(slots="1"), init=[share(slots="1")]),
            "initContainers[0]",
            "1",
            "use 2, or leave it to the webhook",
        ),
    ],
)
def test_a_pod_that_the_mutating_webhook_did_not_number_is_refused(
    obj: Json, where: str, got: str | None, fix: str
) -> None:
    """Without its slots a container would start without a card; with those of another, on the other's card."""
    (problem,) = validate(obj, policy=SLOTTED).problems
    assert (problem.code, problem.where) == ("HC015", f'spec.{where}.resources.limits["{SLOT}"]')
    assert (problem.got, problem.fix) == (got, fix)


def test_a_pod_with_the_right_numbers_is_admitted_from_any_user() -> None:
    assert validate(pod_of(share(slots="1"), share(slots="2")), policy=SLOTTED).allowed


def test_pods_created_before_nodes_offered_slots_can_be_updated() -> None:
    before = pod_of(share())
    after = changed(before, "metadata", "labels", to={"a": "b"})
    assert validate(after, old=before, policy=SLOTTED).allowed
    assert validate(after, old=before, policy=SLOTTED, subresource="status").allowed


def deployment(*containers: Json) -> Json:
    return {"kind": "Deployment", "metadata": {"name": "w"}, "spec": {"template": pod_of(*containers)}}


@pytest.mark.parametrize("written", [None, "1", "5"])
def test_a_template_is_not_changed_because_its_pods_get_slots_when_they_are_created(written: str | None) -> None:
    template = deployment(share(slots=written))
    verdict = judge(names.MUTATE_WORKLOADS_PATH, template, kind="Deployment", policy=SLOTTED)
    assert verdict.allowed and operations(verdict) == []
    assert judge(names.VALIDATE_WORKLOADS_PATH, template, kind="Deployment", policy=SLOTTED).allowed
