"""Cards and shares as resources for native quota: only Halfcard adds and changes them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from admission.policy import AdmissionPolicy
from admission.policy_settings import policy_of
from admission.verdict import Verdict
from halfcard import names
from halfcard.quota.derived_resources import DerivedSettings
from settings.installation import read_settings
from tests.builders import Json, container, pod_of

from .judging import amounts, changed, judge, mutate, mutated, operations, patched, validate

GPU, CARDS, SHARES = names.NVIDIA_GPU, names.DERIVED_CARDS, names.DERIVED_SHARES
COUNTING: Final = AdmissionPolicy(derived=DerivedSettings(("A100",)))
SHARE: Final = {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}


def whole(cards: str = "2", **written: str) -> Json:
    """Returns the pod after the API server's defaults."""
    asked = {GPU: cards, **written}
    return container(asked, dict(asked))


def counted(obj: Json, number: int = 0, field: str = "containers") -> list[Any]:
    """Returns the amounts of cards and of shares, under limits and under requests."""
    found = amounts(obj, number, field)
    return [found[side].get(each) for each in (CARDS, SHARES) for side in ("limits", "requests")]


def pinned(obj: Json, model: str) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "annotations": {names.ASK_MODEL: model}}}


# --- what is added


def test_every_container_gets_its_derived_resources_and_a_second_pass_changes_nothing() -> None:
    before = pod_of(whole(), container(SHARE), container(), init=[whole("1")])
    after = mutated(before, policy=COUNTING)
    assert [counted(after), counted(after, 1)] == [["2", "2", None, None], [None, None, "1", "1"]]
    assert counted(after, 0, "initContainers") == ["1", "1", None, None]
    assert "resources" not in after["spec"]["containers"][2]
    assert validate(after, policy=COUNTING).allowed
    assert operations(mutate(after, policy=COUNTING)) == []


def test_a_pinned_model_is_counted_too() -> None:
    after = mutated(pinned(pod_of(whole()), "NVIDIA-A100-PCIE"), policy=COUNTING)
    assert amounts(after)["limits"] == {GPU: "2", CARDS: "2", f"{CARDS}.A100": "2"}


def test_nothing_is_added_unless_the_settings_say_so() -> None:
    assert counted(mutated(pod_of(whole()), policy=policy_of(read_settings({})))) == [None] * 4
    policy = policy_of(read_settings({"derived_resources": {"schedulers": ["default-scheduler"]}}))
    assert counted(mutated(pod_of(whole()), policy=policy)) == ["2", "2", None, None]


@pytest.mark.parametrize("field", ["limits", "requests"])
def test_an_amount_that_a_user_writes_is_corrected_with_a_warning(field: str) -> None:
    verdict = mutate(pod_of(whole(**{CARDS: "1"})), policy=COUNTING)
    assert amounts(patched(pod_of(whole(**{CARDS: "1"})), verdict))[field][CARDS] == "2"
    assert verdict.warnings == (f"spec.containers[0] {CARDS}: 1 became 2: only Halfcard sets it",)


def test_a_container_without_a_gpu_loses_them() -> None:
    only = pod_of(container({CARDS: "1"}, {CARDS: "1"}))
    assert amounts(mutated(only, policy=COUNTING)) == {"limits": {}, "requests": {}}


def test_templates_are_not_changed() -> None:
    template = {"kind": "Deployment", "metadata": {"name": "w"}, "spec": {"template": pod_of(whole())}}
    verdict = judge(names.MUTATE_WORKLOADS_PATH, template, kind="Deployment", policy=COUNTING)
    assert verdict.allowed and operations(verdict) == []
    assert judge(names.VALIDATE_WORKLOADS_PATH, template, kind="Deployment", policy=COUNTING).allowed


# --- an object that comes back


def test_the_same_file_applies_a_second_time() -> None:
    stored = mutated(pod_of(whole()), policy=COUNTING)
    again = mutate(pod_of(whole()), old=stored, policy=COUNTING)
    assert amounts(patched(pod_of(whole()), again)) == amounts(stored)


def test_pods_created_before_the_setting_can_be_updated_and_get_no_resources() -> None:
    before = pod_of(whole())
    after = changed(before, "metadata", "labels", to={"a": "b"})
    assert mutate(after, old=before, policy=COUNTING) == Verdict()
    assert validate(after, old=before, policy=COUNTING).allowed
    assert validate(after, old=before, policy=COUNTING, subresource="resize").allowed


def test_pods_created_with_the_setting_can_be_updated() -> None:
    before = mutated(pod_of(whole()), policy=COUNTING)
    after = changed(before, "metadata", "labels", to={"a": "b"})
    assert validate(after, old=before, policy=AdmissionPolicy()).allowed


def test_a_model_that_is_pinned_later_does_not_avoid_its_quota() -> None:
    before = mutated(pod_of(whole()), policy=COUNTING)
    (problem,) = validate(pinned(before, "A100"), old=before, policy=COUNTING).problems
    assert (problem.code, problem.got) == ("HC016", None)


# --- what is refused


@pytest.mark.parametrize(
    ("obj", "where", "got", "fix"),
    [
        (pod_of(whole()), CARDS, None, f"add {CARDS}: 2"),
        (pod_of(whole(**{CARDS: "1"})), CARDS, "1", "use 2, or leave it to the webhook"),
        (pod_of(whole(**{CARDS: "2", SHARES: "1"})), SHARES, "1", "remove it, or leave it to the webhook"),
        (pod_of(container({CARDS: "1"})), CARDS, "1", "remove it, or leave it to the webhook"),
        (
            pod_of(whole(**{CARDS: "2", f"{CARDS}.A100": "2"})),
            f"{CARDS}.A100",
            "2",
            "remove it, or leave it to the webhook",
        ),
        (
            pod_of(container({f"{names.DERIVED_GROUP}/x": "1"})),
            f"{names.DERIVED_GROUP}/x",
            "1",
            "remove it, or leave it to the webhook",
        ),
    ],
)
def test_a_pod_with_other_amounts_is_refused(obj: Json, where: str, got: str | None, fix: str) -> None:
    (problem,) = validate(obj, policy=COUNTING).problems
    assert (problem.code, problem.where) == ("HC016", f'spec.containers[0].resources.limits["{where}"]')
    assert (problem.got, problem.fix) == (got, fix)


def test_they_are_refused_where_the_setting_is_off() -> None:
    (problem,) = validate(pod_of(whole(**{CARDS: "2"}))).problems
    assert problem.code == "HC016"
