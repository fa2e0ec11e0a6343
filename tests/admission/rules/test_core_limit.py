from __future__ import annotations

import pytest

from admission.policy import AdmissionPolicy
from admission.rules.core_limit import whole_number_in
from halfcard import names
from tests.builders import Json, container, gpu, pod_of

from ..judging import (
    CORE,
    CORE_LIMIT,
    MARK,
    MEMORY,
    changed,
    codes,
    mutate,
    mutated,
    operations,
    patched,
    validate,
    warned_codes,
)

TUYA_LIMIT = names.TUYA + names.CORE_LIMIT_SUFFIX


def written(obj: Json) -> Json:
    result: Json = obj["metadata"].get("annotations", {})
    return result


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("50", 50),
        (" 50 ", 50),
        ("+50", 50),
        ("\t050\n", 50),
        ("", None),
        ("50%", None),
        ("5 0", None),
        ("50.0", None),
        ("-5", None),
        ("\u0665\u0660", None),
        ("9" * 10, None),
    ],
)
def test_whole_numbers_are_read_in_several_spellings(text: str, number: int | None) -> None:
    assert whole_number_in(text) == number


# --- the default --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "obj",
    [
        pod_of(gpu("30")),
        pod_of(gpu("0.3")),
        pod_of(gpu("30"), gpu("30", "8"), container()),
        pod_of(gpu("30"), init=[gpu("0.3")]),
        pod_of(container(), init=[gpu("30")]),
    ],
)
def test_one_share_in_all_gpu_containers_becomes_the_marked_default(obj: Json) -> None:
    assert written(mutated(obj)) == {CORE_LIMIT: "30", MARK: f"{CORE_LIMIT}=30"}


@pytest.mark.parametrize(
    "obj",
    [
        pod_of(gpu("30"), gpu("40")),
        pod_of(gpu("30"), init=[gpu("40")]),
        pod_of(gpu("100", None)),
        pod_of(gpu("200", None)),
        pod_of(gpu("30"), gpu("100", None)),
        pod_of(gpu("0", "0")),
        pod_of(container({names.ALIYUN_GPU_MEM: "3"})),
        pod_of(container({names.TUYA_SGPU: "1"})),
        pod_of(gpu("30"), container({names.ALIYUN_GPU_MEM: "3"})),
        pod_of(container({names.TUYA + names.VCUDA_MEMORY_SUFFIX: "3"})),
    ],
)
def test_different_shares_whole_cards_and_claims_without_cores_have_no_default(obj: Json) -> None:
    assert written(mutated(obj)) == {}


def test_the_annotation_has_the_prefix_of_its_dialect() -> None:
    obj = pod_of(container({names.TUYA + names.VCUDA_CORE_SUFFIX: "30", names.TUYA + names.VCUDA_MEMORY_SUFFIX: 2}))
    assert written(mutated(obj)) == {TUYA_LIMIT: "30", MARK: f"{TUYA_LIMIT}=30"}


def test_other_annotations_stay_and_a_limit_of_the_user_is_not_marked() -> None:
    assert written(mutated(pod_of(gpu("30"), annotations={"a/b": "c"}))) == {
        "a/b": "c",
        CORE_LIMIT: "30",
        MARK: f"{CORE_LIMIT}=30",
    }
    assert written(mutated(pod_of(gpu("30"), annotations={CORE_LIMIT: "50"}))) == {CORE_LIMIT: "50"}


def test_a_setting_turns_the_default_off() -> None:
    off = AdmissionPolicy(default_core_limit=False)
    assert written(mutated(pod_of(gpu("30")), policy=off)) == {}
    once = mutated(pod_of(gpu("30")))
    assert written(mutated(once, policy=off)) == {}


@pytest.mark.parametrize(
    ("container_now", "limit"),
    [(gpu("40"), "40"), (gpu("20"), "20"), (gpu("0.4"), "40"), (gpu("200", None), None), (container(), None)],
)
def test_our_default_is_corrected_when_another_webhook_has_changed_the_pod(
    container_now: Json, limit: str | None
) -> None:
    once = mutated(pod_of(gpu("30"), annotations={"keep": "me"}))
    again = mutated(changed(once, "spec", "containers", 0, to=container_now))
    wanted = {} if limit is None else {CORE_LIMIT: limit, MARK: f"{CORE_LIMIT}={limit}"}
    assert written(again) == {"keep": "me", **wanted}
    assert validate(again).allowed


def test_a_second_container_with_another_share_removes_our_default() -> None:
    once = mutated(pod_of(gpu("30")))
    both = changed(once, "spec", "containers", to=[gpu("30"), gpu("40")])
    assert written(mutated(both)) == {}


@pytest.mark.parametrize("limit", [None, "80"])
def test_a_mark_of_another_limit_is_refused(limit: str | None) -> None:
    annotations_now = {MARK: f"{CORE_LIMIT}=30"} | ({CORE_LIMIT: limit} if limit else {})
    assert codes(mutate(pod_of(gpu("30"), annotations=annotations_now))) == ["HC020"]


def test_a_forged_mark_does_not_change_other_annotations() -> None:
    verdict = mutate(pod_of(gpu("30"), annotations={"a": "b", MARK: "a=b"}))
    assert codes(verdict) == ["HC020"]
    assert verdict.changes == ()


@pytest.mark.parametrize("text", [" 50 ", "+50", "050"])
def test_a_written_limit_is_spelled_plainly(text: str) -> None:
    obj = pod_of(gpu("30"), annotations={CORE_LIMIT: text})
    assert written(mutated(obj)) == {CORE_LIMIT: "50"}
    assert validate(mutated(obj)).allowed


def test_a_plain_limit_is_not_changed() -> None:
    assert operations(mutate(pod_of(gpu("30"), annotations={CORE_LIMIT: "50"}))) == []


# --- the rule -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("containers", "limit", "refused"),
    [
        ([gpu("30")], "30", False),
        ([gpu("30")], "100", False),
        ([gpu("30")], "29", True),
        ([gpu("30")], "101", True),
        ([gpu("30")], "0", True),
        ([gpu("30")], "all", True),
        ([gpu("30")], "", True),
        ([gpu("30"), gpu("60")], "59", True),
        ([gpu("30"), gpu("60")], "60", False),
        ([gpu("30"), gpu("200", None)], "50", False),
        ([gpu("30"), gpu("200", None)], "200", True),
        ([gpu("200", None)], "much", True),
        ([container()], "much", False),
    ],
)
def test_the_limit_of_a_share_lies_between_the_largest_share_and_the_card(
    containers: list[Json],
    limit: str,
    refused: bool,  # noqa: FBT001
) -> None:
    obj = pod_of(*containers, annotations={CORE_LIMIT: limit})
    wanted = ["HC009"] if refused else []
    assert codes(mutate(obj)) == wanted
    assert codes(validate(obj)) == wanted


def test_init_containers_count_for_the_largest_share() -> None:
    obj = pod_of(gpu("30"), init=[gpu("70")], annotations={CORE_LIMIT: "50"})
    (problem,) = validate(obj).problems
    assert (problem.code, problem.where, problem.got) == ("HC009", f'metadata.annotations["{CORE_LIMIT}"]', "50")
    assert "70-100" in problem.fix


@pytest.mark.parametrize(("limit", "warned"), [("200", False), ("100", True), ("0", True), (" 200 ", False)])
def test_a_limit_of_whole_cards_gets_a_warning_where_it_differs(
    limit: str,
    warned: bool,  # noqa: FBT001
) -> None:
    verdict = validate(pod_of(gpu("200", "128"), annotations={CORE_LIMIT: limit}))
    assert verdict.allowed
    assert warned_codes(verdict) == (["HC041"] if warned else [])


def test_memory_alone_allows_any_limit() -> None:
    memory = {names.TUYA + names.VCUDA_MEMORY_SUFFIX: "3"}
    obj = pod_of(container(memory, dict(memory)), annotations={TUYA_LIMIT: "1"})
    assert validate(obj).allowed


def test_the_limit_of_a_dialect_that_the_pod_does_not_use_is_not_judged() -> None:
    assert validate(pod_of(gpu("30"), annotations={TUYA_LIMIT: "nonsense"})).allowed


def test_a_second_pass_over_a_marked_pod_changes_nothing() -> None:
    once = mutated(pod_of(gpu("30"), container()))
    assert mutate(once).changes == ()


def test_whole_cards_of_two_containers_are_not_added() -> None:
    obj = pod_of(gpu("100", None), gpu("200", None), annotations={CORE_LIMIT: "100"})
    assert validate(obj).warnings == ()


def test_patches_of_annotations_apply_where_there_were_none() -> None:
    nothing: list[Json | None] = [{}, None]
    for empty in nothing:
        obj = changed(pod_of(gpu("30")), "metadata", "annotations", to=empty)
        assert written(patched(obj, mutate(obj))) == {CORE_LIMIT: "30", MARK: f"{CORE_LIMIT}=30"}


def test_unreadable_amounts_have_no_default() -> None:
    verdict = mutate(pod_of(container({CORE: "many", MEMORY: "20"})))
    assert codes(verdict) == ["HC001"]
    assert verdict.changes == ()
