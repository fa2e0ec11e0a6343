from __future__ import annotations

from typing import Any

import pytest

from admission.policy import AdmissionPolicy, PlacementDefaults
from halfcard import names
from halfcard.pod.spec import Toleration
from tests.builders import Json, container, gpu, pod_of

from .judging import (
    CORE,
    MARK,
    MEMORY,
    VOID,
    amounts,
    cards,
    changed,
    mutate,
    mutated,
    operations,
    patched,
    warned_codes,
)

T4S = cards(15109, 15109)
NO_DEFAULT = AdmissionPolicy(default_core_limit=False)

# --- amounts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("0.3", "30"),
        ("300m", "30"),
        (0.3, "30"),
        ("0.01", "1"),
        ("0.99", "99"),
        ("10e-1", None),
        ("30", None),
        (30, None),
        ("30000m", None),
        ("3e1", None),
        ("0.03k", None),
        ("30.0", None),
        ("100", None),
        ("200", None),
        ("1k", None),
    ],
)
def test_a_fraction_of_a_card_becomes_per_cent_and_an_integer_keeps_its_spelling(
    written: Any, stored: str | None
) -> None:
    after = amounts(mutated(pod_of(gpu(written))))
    wanted = written if stored is None else stored
    assert after["limits"][CORE] == wanted
    assert after["requests"][CORE] == wanted


@pytest.mark.parametrize(
    ("written", "stored", "rounded"),
    [
        ("5Gi", "20", False),
        ("256Mi", "1", False),
        ("5000Mi", "20", True),
        ("1Ki", "1", True),
        ("1048576", "1", True),
        (5 * 2**30, "20", False),
        ("5e9", "19", True),
        ("5368709120", "20", False),
        ("1M", None, False),
        ("1k", None, False),
        ("20", None, False),
        ("2e1", None, False),
        ("1048575", None, False),
    ],
)
def test_memory_that_can_only_be_bytes_becomes_units_rounded_up_with_a_warning(
    written: Any,
    stored: str | None,
    rounded: bool,  # noqa: FBT001
) -> None:
    obj = pod_of(gpu("30", written))
    verdict = mutate(obj)
    after = amounts(patched(obj, verdict))
    wanted = written if stored is None else stored
    assert after["limits"][MEMORY] == wanted
    assert after["requests"][MEMORY] == wanted
    assert any("rounded up" in line for line in verdict.warnings) is rounded


def test_an_exact_repair_needs_no_warning() -> None:
    assert mutate(pod_of(gpu("0.3", "5Gi"))).warnings == ()


@pytest.mark.parametrize("cores", ["1", "9", 1, "1000m"])
def test_an_integer_from_1_to_9_gets_the_warning_that_it_is_per_cent(cores: Any) -> None:
    verdict = mutate(pod_of(gpu(cores)))
    assert warned_codes(verdict) == ["HC044"]
    assert "per cent" in verdict.warnings[0]


@pytest.mark.parametrize("cores", ["10", "100", "0.05", "30"])
def test_other_amounts_get_no_such_hint(cores: str) -> None:
    assert mutate(pod_of(gpu(cores))).warnings == ()


@pytest.mark.parametrize("field", ["containers", "initContainers"])
@pytest.mark.parametrize("sidecar", [{}, {"restartPolicy": "Always"}])
def test_the_missing_side_is_filled_from_the_other_after_the_repair(field: str, sidecar: Json) -> None:
    for written, missing in (("limits", "requests"), ("requests", "limits")):
        asking = container(**{written: {CORE: "0.3", MEMORY: "5Gi", "cpu": "1"}}, **sidecar)
        obj = pod_of(asking) if field == "containers" else pod_of(container(), init=[asking])
        after = amounts(mutated(obj), field=field)
        assert after[written] == {CORE: "30", MEMORY: "20", "cpu": "1"}
        assert after[missing] == {CORE: "30", MEMORY: "20"}


def test_one_missing_resource_is_added_beside_the_others() -> None:
    obj = pod_of(container({CORE: "30", MEMORY: "20", "cpu": "2"}, {MEMORY: "20", "cpu": "1"}))
    assert amounts(mutated(obj))["requests"] == {CORE: "30", MEMORY: "20", "cpu": "1"}


@pytest.mark.parametrize("empty", [{}, None])
def test_an_empty_side_is_filled_whole(empty: Json | None) -> None:
    obj = changed(
        pod_of(container({CORE: "30", MEMORY: "20"})), "spec", "containers", 0, "resources", "requests", to=empty
    )
    assert amounts(mutated(obj))["requests"] == {CORE: "30", MEMORY: "20"}


def test_two_spellings_of_one_amount_are_equal_and_only_the_foreign_one_is_respelled() -> None:
    obj = pod_of(container({CORE: "0.3", MEMORY: "20"}, {CORE: "30000m", MEMORY: "5Gi"}))
    assert amounts(mutated(obj)) == {
        "limits": {CORE: "30", MEMORY: "20"},
        "requests": {CORE: "30000m", MEMORY: "20"},
    }


def test_different_amounts_are_not_repaired_at_any_severity() -> None:
    obj = pod_of(container({CORE: "30", MEMORY: "20"}, {CORE: "40", MEMORY: "20"}))
    assert [problem.code for problem in mutate(obj).problems] == ["HC004"]
    mild = AdmissionPolicy(severities={"HC004": "warn"})  # type: ignore[dict-item]
    assert amounts(patched(obj, mutate(obj, policy=mild))) == amounts(obj)


@pytest.mark.parametrize("zero", ["0", 0, "0.0", "0m"])
def test_an_amount_of_0_is_no_claim(zero: Any) -> None:
    obj = pod_of(gpu(zero, zero), container())
    verdict = mutate(obj)
    assert verdict.allowed
    assert verdict.changes == ()


def test_unknown_resources_are_not_changed() -> None:
    assert mutate(pod_of(container({"cpu": "0.305", "example.com/gpu": "1.5"}, {"cpu": "0.1"}))).changes == ()


@pytest.mark.parametrize("word", [names.HAMI_GPUMEM, names.HAMI_GPUCORES, names.HAMI_GPUMEM_PERCENTAGE])
def test_hami_amounts_without_a_number_of_cards_mean_one_card_with_a_warning(word: str) -> None:
    obj = pod_of(container({word: "30"}))
    verdict = mutate(obj)
    assert amounts(patched(obj, verdict)) == {
        "limits": {word: "30", names.NVIDIA_GPU: "1"},
        "requests": {word: "30", names.NVIDIA_GPU: "1"},
    }
    assert len(verdict.warnings) == 1
    assert names.NVIDIA_GPU in verdict.warnings[0]


def test_a_written_number_of_hami_cards_stays() -> None:
    obj = pod_of(container({names.HAMI_GPUMEM: "3000", names.NVIDIA_GPU: "2"}))
    verdict = mutate(obj)
    assert amounts(patched(obj, verdict))["limits"] == {names.HAMI_GPUMEM: "3000", names.NVIDIA_GPU: "2"}
    assert verdict.warnings == ()


def test_every_warning_is_short_even_where_names_are_long() -> None:
    verdict = mutate(pod_of(*(gpu("3", f"{5000 + n}Mi") for n in range(3)), container({names.HAMI_GPUCORES: "5"})))
    assert len(verdict.warnings) >= 5
    assert max(map(len, verdict.warnings)) <= 120


# --- what sees nothing --------------------------------------------------------------------------------------------


def environments(obj: Json, field: str = "containers") -> list[Any]:
    return [each.get("env") for each in obj["spec"][field]]


def test_containers_without_a_claim_see_no_card() -> None:
    other = {"name": "A", "value": "b"}
    after = mutated(pod_of(gpu(), container(), container(env=[other]), container(env=[]), init=[container()]))
    assert environments(after) == [None, [VOID], [other, VOID], [VOID]]
    assert environments(after, "initContainers") == [[VOID]]


@pytest.mark.parametrize("value", ["void", "none", ""])
def test_a_container_that_hides_all_cards_itself_keeps_its_value(value: str) -> None:
    chosen = [{"name": names.VISIBLE_DEVICES, "value": value}]
    assert environments(mutated(pod_of(gpu(), container(env=chosen)))) == [None, chosen]


def test_a_pod_without_any_claim_is_not_touched() -> None:
    assert mutate(pod_of(container(), init=[container()])).changes == ()


def test_a_container_added_to_a_running_gpu_pod_sees_no_card() -> None:
    old = pod_of(gpu(), ephemeralContainers=[{"name": "first"}])
    new = pod_of(gpu(), ephemeralContainers=[{"name": "first"}, {"name": "second"}])
    after = patched(new, mutate(new, old=old, subresource="ephemeralcontainers"))
    assert environments(after, "ephemeralContainers") == [None, [VOID]]
    assert environments(after) == [None]


def test_an_added_container_that_a_merge_puts_first_sees_no_card() -> None:
    old = pod_of(gpu(), ephemeralContainers=[{"name": "first"}])
    new = pod_of(gpu(), ephemeralContainers=[{"name": "second"}, {"name": "first"}])
    after = patched(new, mutate(new, old=old, subresource="ephemeralcontainers"))
    assert environments(after, "ephemeralContainers") == [[VOID], None]


def test_a_merge_may_put_the_added_container_before_the_others() -> None:
    old = pod_of(gpu(), ephemeralContainers=[{"name": "first"}])
    new = pod_of(gpu(), ephemeralContainers=[{"name": "second"}, {"name": "first"}])
    after = patched(new, mutate(new, old=old, subresource="ephemeralcontainers"))
    assert environments(after, "ephemeralContainers") == [[VOID], None]


def test_a_container_added_to_a_pod_without_gpu_is_not_changed() -> None:
    new = pod_of(container(), ephemeralContainers=[{"name": "debug"}])
    assert mutate(new, old=pod_of(container()), subresource="ephemeralcontainers").changes == ()


# --- placement ----------------------------------------------------------------------------------------------------

TOLERATION = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
PLACING = AdmissionPolicy(
    placement=PlacementDefaults("gpu-scheduler", "nvidia", (Toleration("gpu", "Exists", effect="NoSchedule"),)),
    schedulers=frozenset({"gpu-scheduler", "default-scheduler"}),
)


@pytest.mark.parametrize("given", [{}, {"schedulerName": "default-scheduler", "tolerations": []}])
def test_gpu_pods_get_scheduler_runtime_class_and_toleration_of_the_settings(given: Json) -> None:
    spec = mutated(pod_of(gpu(), **given), policy=PLACING)["spec"]
    assert spec["schedulerName"] == "gpu-scheduler"
    assert spec["runtimeClassName"] == "nvidia"
    assert spec["tolerations"] == [TOLERATION]


def test_values_of_the_pod_itself_stay() -> None:
    other = {"key": "other", "operator": "Exists"}
    spec = mutated(pod_of(gpu(), schedulerName="mine", runtimeClassName="kata", tolerations=[other]), policy=PLACING)[
        "spec"
    ]
    assert (spec["schedulerName"], spec["runtimeClassName"]) == ("mine", "kata")
    assert spec["tolerations"] == [other, TOLERATION]


def test_pods_of_daemon_sets_keep_their_scheduler() -> None:
    obj = pod_of(gpu(), schedulerName="default-scheduler")
    obj["metadata"]["labels"] = {"pod-template-generation": "1"}
    spec = mutated(obj, policy=PLACING)["spec"]
    assert (spec["schedulerName"], spec["runtimeClassName"]) == ("default-scheduler", "nvidia")


def test_an_existing_toleration_is_not_added_again() -> None:
    obj = pod_of(gpu(), tolerations=[TOLERATION])
    assert mutated(obj, policy=PLACING)["spec"]["tolerations"] == [TOLERATION]


def test_pods_without_a_claim_and_installations_without_the_setting_get_no_defaults() -> None:
    assert mutate(pod_of(container()), policy=PLACING).changes == ()
    assert {"schedulerName", "runtimeClassName", "tolerations"}.isdisjoint(mutated(pod_of(gpu()))["spec"])


# --- an object that comes back ------------------------------------------------------------------------------------


def test_the_same_file_applies_a_second_time() -> None:
    stored = mutated(pod_of(gpu("0.3", "5Gi")))
    again = changed(stored, "spec", "containers", 0, "resources", "limits", to={CORE: "300m", MEMORY: "5Gi"})
    assert patched(again, mutate(again, old=stored)) == stored


def test_an_update_changes_nothing_else() -> None:
    old = pod_of(container({CORE: "30", MEMORY: "20"}, {CORE: "30", MEMORY: "20"}), container())
    new = changed(old, "metadata", "labels", to={"a": "b"})
    assert mutate(new, old=old, policy=PLACING).changes == ()


def test_an_update_restores_the_side_that_the_manifest_omits() -> None:
    """`kubectl replace` sends the file; the API server fills in requests, never limits."""
    stored = mutated(pod_of(container(requests={CORE: "0.3", MEMORY: "20"})))
    again = changed(stored, "spec", "containers", 0, "resources", to={"requests": {CORE: "300m", MEMORY: "20"}})
    assert amounts(patched(again, mutate(again, old=stored))) == amounts(stored)


def test_an_update_restores_the_card_that_hami_amounts_imply() -> None:
    stored = mutated(pod_of(container({names.HAMI_GPUMEM: "3000"})))
    wanted = {names.HAMI_GPUMEM: "3000"}
    again = changed(stored, "spec", "containers", 0, "resources", to={"limits": wanted, "requests": dict(wanted)})
    assert amounts(patched(again, mutate(again, old=stored))) == amounts(stored)


def test_an_update_keeps_a_foreign_spelling_that_is_stored() -> None:
    """The pod was stored while the webhook was down; its resources are immutable."""
    old = pod_of(gpu("0.3"))
    assert mutate(changed(old, "metadata", "labels", to={"a": "b"}), old=old).changes == ()


def test_kubernetes_judges_an_update_to_another_amount() -> None:
    stored = mutated(pod_of(gpu("0.3")), policy=NO_DEFAULT)
    assert operations(mutate(changed(stored, "spec", "containers", 0, to=gpu("0.4")), old=stored)) == []


def test_a_pod_without_metadata_gets_its_annotation() -> None:
    obj = pod_of(gpu())
    del obj["metadata"]
    assert MARK in mutated(obj)["metadata"]["annotations"]


# --- the memory of whole cards ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cores", "written", "stored"),
    [
        ("200", "128", "118"),
        ("100", "128", "59"),
        ("2", "59", "59"),
        ("200", "118", "118"),
        ("200", "32Gi", "118"),
        ("30", "59", "59"),
    ],
)
def test_whole_cards_get_no_more_memory_than_cards_have(cores: str, written: str, stored: str) -> None:
    obj = pod_of(gpu(cores, written))
    after = patched(obj, mutate(obj, cluster=T4S))
    assert amounts(after)["limits"][MEMORY] == amounts(after)["requests"][MEMORY] == stored
    assert mutate(after, cluster=T4S).changes == ()


def test_whole_cards_get_the_memory_of_the_smallest_card_since_they_may_get_any() -> None:
    obj = pod_of(gpu("200", "200"))
    assert amounts(patched(obj, mutate(obj, cluster=cards(81559, 15109))))["limits"][MEMORY] == "118"


def test_memory_of_each_card_is_lowered_for_each_card() -> None:
    words = {names.NVIDIA_GPU: "2", names.HAMI_GPUCORES: "100", names.HAMI_GPUMEM: "20000"}
    obj = pod_of(container(words))
    assert amounts(patched(obj, mutate(obj, cluster=T4S)))["limits"][names.HAMI_GPUMEM] == "15109"


def test_where_no_card_is_known_the_memory_of_whole_cards_stays() -> None:
    obj = pod_of(gpu("200", "128"))
    assert amounts(patched(obj, mutate(obj)))["limits"][MEMORY] == "128"


def test_a_manifest_whose_memory_was_lowered_can_be_applied_again() -> None:
    obj = pod_of(gpu("200", "128"))
    stored = patched(obj, mutate(obj, cluster=T4S))
    again = changed(stored, "spec", "containers", 0, "resources", to=obj["spec"]["containers"][0]["resources"])
    assert amounts(patched(again, mutate(again, old=stored, cluster=T4S))) == amounts(stored)
