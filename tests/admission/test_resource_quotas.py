from __future__ import annotations

from typing import Any

import pytest

from admission.verdict import Verdict
from halfcard import names
from halfcard.dialects.hami import HAMI_WORDS
from halfcard.quota.requests_twin import read_marks
from tests.builders import Json

from .judging import CORE, MEMORY, changed, codes, judge, patched

LIMITS, REQUESTS = f"limits.{CORE}", f"requests.{CORE}"
LIMITS_MEMORY, REQUESTS_MEMORY = f"limits.{MEMORY}", f"requests.{MEMORY}"


def quota(hard: Json, **annotations: str) -> Json:
    metadata = {"name": "gpu", **({"annotations": dict(annotations)} if annotations else {})}
    return {"kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": dict(hard)}}


def marked(hard: Json, marks: str) -> Json:
    return quota(hard, **{names.QUOTA_TWINS: marks})


def mutate(obj: Json, **context: Any) -> Verdict:
    return judge(names.MUTATE_QUOTAS_PATH, obj, kind="ResourceQuota", **context)


def settled(obj: Json) -> Json:
    verdict = mutate(obj)
    assert verdict.allowed, verdict.message
    after = patched(obj, verdict)
    assert mutate(after).changes == ()
    return after


def hard(obj: Json) -> Json:
    result: Json = obj["spec"]["hard"]
    return result


def marks(obj: Json) -> str | None:
    result: str | None = obj["metadata"].get("annotations", {}).get(names.QUOTA_TWINS)
    return result


@pytest.mark.parametrize("source", [LIMITS, CORE])
def test_a_key_that_is_never_counted_gets_the_twin_that_is(source: str) -> None:
    obj = quota({source: "100", "pods": "5"})
    after = settled(obj)
    assert hard(after) == {source: "100", "pods": "5", REQUESTS: "100"}
    assert marks(after) == f"{REQUESTS}=100"
    (warning,) = mutate(obj).warnings
    assert REQUESTS in warning
    assert len(warning) <= 120


def test_a_requests_key_alone_is_not_changed() -> None:
    assert mutate(quota({REQUESTS: "100"})) == Verdict()


def test_other_keys_are_not_changed() -> None:
    other = {"limits.cpu": "1.5", "requests.example.com/gpu": "1.5", "pods": "1", "limits.memory": "5Gi"}
    assert mutate(quota(other)) == Verdict()


@pytest.mark.parametrize(
    ("key", "written", "stored"),
    [
        (REQUESTS, "1.5", "150"),
        (REQUESTS, "0.3", "30"),
        (REQUESTS, "1500m", "150"),
        (REQUESTS, "150", "150"),
        (REQUESTS, 150, 150),
        (REQUESTS, "1k", "1k"),
        (REQUESTS_MEMORY, "5Gi", "20"),
        (REQUESTS_MEMORY, "20", "20"),
    ],
)
def test_fractions_become_per_cent_and_bytes_become_units_under_the_same_key(
    key: str, written: Any, stored: Any
) -> None:
    obj = quota({key: written})
    assert hard(settled(obj)) == {key: stored}
    assert mutate(obj).warnings == ()


def test_a_budget_that_is_no_whole_number_of_units_is_rounded_down_with_a_warning() -> None:
    obj = quota({REQUESTS_MEMORY: "5000Mi"})
    assert hard(settled(obj)) == {REQUESTS_MEMORY: "19"}
    assert "rounded down" in mutate(obj).warnings[0]


def test_the_twin_has_the_repaired_amount() -> None:
    after = settled(quota({LIMITS: "1.5", LIMITS_MEMORY: "5Gi"}))
    assert hard(after) == {LIMITS: "150", REQUESTS: "150", LIMITS_MEMORY: "20", REQUESTS_MEMORY: "20"}
    assert read_marks(marks(after) or "") == {REQUESTS: "150", REQUESTS_MEMORY: "20"}


@pytest.mark.parametrize(
    ("written", "counts"),
    [
        ({LIMITS: "100", REQUESTS: "80"}, "80"),
        ({LIMITS: "80", REQUESTS: "100"}, "80"),
        ({CORE: "50", LIMITS: "80", REQUESTS: "100"}, "50"),
        ({LIMITS: "0.5", REQUESTS: "100"}, "50"),
        ({LIMITS: "100", REQUESTS: "0.5"}, "50"),
        ({LIMITS: "0", REQUESTS: "100"}, "0"),
    ],
)
def test_where_several_stand_and_differ_the_smallest_counts(written: Json, counts: str) -> None:
    after = settled(quota(written))
    assert hard(after)[REQUESTS] == counts
    assert marks(after) is None


@pytest.mark.parametrize(
    ("obj", "smallest"),
    [
        (quota({LIMITS: "100", REQUESTS: "80"}), f"{REQUESTS}=80 counts, the smallest of what is written"),
        (quota({CORE: "100", REQUESTS: "80"}), f"{REQUESTS}=80 counts, the smallest of what is written"),
        (
            quota({CORE: "100", LIMITS: "80"}),
            f"{REQUESTS}=80, the smallest of what is written, was added: Kubernetes counts only this key",
        ),
        (
            marked({CORE: "100", LIMITS: "80", REQUESTS: "80"}, f"{REQUESTS}=80"),
            f"{REQUESTS}=80 counts, the smallest of what is written",
        ),
    ],
)
def test_where_several_differ_a_warning_says_which_counts(obj: Json, smallest: str) -> None:
    assert mutate(obj).warnings == (smallest,)


@pytest.mark.parametrize("side", ["limits.", "requests.", ""])
@pytest.mark.parametrize("word", sorted(HAMI_WORDS))
def test_amounts_per_card_have_a_warning_that_names_gpu_quota(side: str, word: str) -> None:
    *_, warning = mutate(quota({side + word: "50"})).warnings
    assert warning.startswith(f"{side}{word}: Kubernetes does not multiply") and names.GPU_QUOTA in warning
    assert len(warning) <= 120 and not warning.endswith("…")


def test_lowering_a_written_key_gives_a_warning() -> None:
    (warning,) = mutate(quota({LIMITS: "80", REQUESTS: "100"})).warnings
    assert "80" in warning
    assert "100" in warning


def test_twins_that_agree_are_not_touched() -> None:
    assert mutate(quota({LIMITS: "100", REQUESTS: "100"})) == Verdict()


@pytest.mark.parametrize("source", [LIMITS, CORE])
@pytest.mark.parametrize("now", ["200", "50", "2.5"])
def test_our_twin_follows_its_source(source: str, now: str) -> None:
    """A merge by kubectl: the file has only the source, the object keeps twin and mark."""
    stored = settled(quota({source: "100"}))
    after = settled(changed(stored, "spec", "hard", source, to=now))
    wanted = {"200": "200", "50": "50", "2.5": "250"}[now]
    assert hard(after) == {source: wanted, REQUESTS: wanted}
    assert marks(after) == f"{REQUESTS}={wanted}"


def test_a_twin_that_a_user_has_changed_is_kept() -> None:
    stored = settled(quota({LIMITS: "100"}))
    after = settled(changed(stored, "spec", "hard", REQUESTS, to="60"))
    assert hard(after) == {LIMITS: "100", REQUESTS: "60"}
    assert marks(after) is None


def test_our_twin_is_removed_with_its_source_and_a_warning() -> None:
    stored = settled(quota({LIMITS: "100", "pods": "5"}))
    gone = changed(stored, "spec", "hard", to={REQUESTS: "100", "pods": "5"})
    after = settled(gone)
    assert hard(after) == {"pods": "5"}
    assert marks(after) is None
    assert "removed" in mutate(gone).warnings[0]


def test_a_twin_that_was_replaced_away_is_added_again() -> None:
    assert hard(settled(marked({LIMITS: "100"}, f"{REQUESTS}=100"))) == {LIMITS: "100", REQUESTS: "100"}


def test_one_of_two_sources_is_enough_to_keep_the_twin() -> None:
    stored = settled(quota({LIMITS: "100", CORE: "80"}))
    assert hard(stored)[REQUESTS] == "80"
    after = settled(changed(stored, "spec", "hard", to={LIMITS: "100", REQUESTS: "80"}))
    assert hard(after)[REQUESTS] == "100"


@pytest.mark.parametrize("text", ["", "nonsense", "=", "a=b,c", f"{REQUESTS}=7", "requests.cpu=1", ",,="])
def test_unreadable_marks_are_removed(text: str) -> None:
    after = settled(marked({REQUESTS: "100", "requests.cpu": "1"}, text))
    assert hard(after) == {REQUESTS: "100", "requests.cpu": "1"}
    assert marks(after) is None


def test_every_dialect_gets_its_twin() -> None:
    after = settled(quota({f"limits.{names.TUYA_SGPU}": "4", f"limits.{names.NVIDIA_GPU}": "2"}))
    assert hard(after)[f"requests.{names.TUYA_SGPU}"] == "4"
    assert hard(after)[f"requests.{names.NVIDIA_GPU}"] == "2"


@pytest.mark.parametrize(
    ("key", "written", "code"),
    [
        (LIMITS, "0.305", "HC030"),
        (REQUESTS, "many", "HC001"),
        (REQUESTS, "-1", "HC001"),
        (CORE, "-0.5", "HC030"),
        (REQUESTS_MEMORY, "1.5", "HC003"),
        (f"limits.{names.NVIDIA_GPU}", "1.5", "HC001"),
    ],
)
def test_unreadable_amounts_are_refused_at_their_key(key: str, written: str, code: str) -> None:
    (problem,) = mutate(quota({key: written})).problems
    assert (problem.code, problem.where, problem.got) == (code, f'spec.hard["{key}"]', written)


def test_all_problems_of_a_quota_are_reported_at_once() -> None:
    assert codes(mutate(quota({LIMITS: "0.305", REQUESTS_MEMORY: "much", REQUESTS: "1"}))) == ["HC001", "HC030"]


def test_an_update_is_judged_only_by_what_it_changes() -> None:
    old = quota({LIMITS: "0.305"})
    relabelled = changed(old, "metadata", "labels", to={"a": "b"})
    assert mutate(relabelled, old=old) == Verdict()
    assert codes(mutate(changed(old, "spec", "hard", LIMITS, to="0.405"), old=old)) == ["HC030"]


@pytest.mark.parametrize("empty", [{}, {"spec": None}, {"spec": {}}, {"spec": {"hard": None}}, {"metadata": None}])
def test_an_empty_quota_is_not_changed(empty: Json) -> None:
    assert mutate(empty) == Verdict()


@pytest.mark.parametrize(
    "metadata", [None, {}, {"annotations": None}, {"annotations": {}}, {"annotations": {"a": "b"}}]
)
def test_the_mark_is_added_to_any_metadata(metadata: Json | None) -> None:
    obj = {"kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {LIMITS: "100"}}}
    if metadata is None:
        del obj["metadata"]
    assert marks(settled(obj)) == f"{REQUESTS}=100"
