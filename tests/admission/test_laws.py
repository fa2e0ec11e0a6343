"""Laws that hold for every object, also for malformed ones."""

from __future__ import annotations

import copy
import io
import json
import time
from collections.abc import Iterator
from typing import Any, Final

import jsonpatch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from admission.dispatch import STAGES
from admission.endpoint import admission_app
from admission.metrics import WebhookMetrics
from admission.policy import AdmissionPolicy
from admission.verdict import Verdict
from halfcard import names
from halfcard.cluster_view import NOTHING_KNOWN
from halfcard.dialects import Dialects
from halfcard.quantity import Quantity
from serving.log import Log
from tests.builders import Json

from . import wild
from .asgi import Answer, ask
from .judging import judge, mutate, operations, patched, validate

LAW: Final = settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
GPU: Final = Dialects().resources
COUNTED: Final = GPU | {names.SLOT}
policies = st.sampled_from(wild.POLICIES)

# --- what a patch may do ------------------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Returns every member and element by its path, mappings and lists included."""
    yield path, value if not isinstance(value, dict | list) else type(value)
    if isinstance(value, dict):
        for key, member in value.items():
            yield from leaves(member, (*path, key))
    elif isinstance(value, list):
        for number, element in enumerate(value):
            yield from leaves(element, (*path, str(number)))


def differing(before: Json, after: Json) -> set[tuple[str, ...]]:
    first, second = dict(leaves(before)), dict(leaves(after))
    missing = object()
    return {path for path in first | second if first.get(path, missing) != second.get(path, missing)}


def tokens(pointer: str) -> tuple[str, ...]:
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def assert_changes_only_what_it_says(before: Json, verdict: Verdict) -> None:
    """Checks each operation alone: it changes something, and only at or below its path."""
    now = before
    for operation in operations(verdict):
        after = patched_by(now, operation)
        path = tokens(operation["path"])
        if path[-1] == "-":
            path = path[:-1]
        changed = differing(now, after)
        assert changed
        assert all(each[: len(path)] == path for each in changed)
        now = after
    assert now == patched(before, verdict)


def patched_by(obj: Json, operation: Json) -> Json:
    result: Json = jsonpatch.apply_patch(copy.deepcopy(obj), [operation])
    return result


def assert_respells_only_what_needs_it(before: Json, verdict: Verdict) -> None:
    """Checks that no replaced amount was right before."""
    present = dict(leaves(before))
    for operation in operations(verdict):
        path = tokens(operation["path"])
        if operation["op"] == "replace" and path[-1] in GPU:
            assert Quantity.parse(str(present[path]).strip()) != Quantity.parse(operation["value"])


# --- pods ---------------------------------------------------------------------------------------------------------


@LAW
@given(wild.pods(), policies)
def test_mutating_twice_changes_nothing_the_second_time(obj: Json, policy: AdmissionPolicy) -> None:
    verdict = mutate(obj, policy=policy)
    assume(verdict.allowed)
    again = mutate(patched(obj, verdict), policy=policy)
    assert again.allowed
    assert again.changes == ()


@LAW
@given(wild.pods(), policies)
def test_what_the_mutating_call_lets_pass_the_validating_call_lets_pass(obj: Json, policy: AdmissionPolicy) -> None:
    verdict = mutate(obj, policy=policy)
    assume(verdict.allowed)
    final = validate(patched(obj, verdict), policy=policy)
    assert final.allowed, final.message


@LAW
@given(wild.pods(), policies)
def test_a_problem_that_cannot_be_repaired_is_found_by_both_calls(obj: Json, policy: AdmissionPolicy) -> None:
    first, second = mutate(obj, policy=policy), validate(obj, policy=policy)
    assert {problem.code for problem in first.problems} <= {problem.code for problem in second.problems}


@LAW
@given(wild.pods(), policies)
def test_a_patch_applies_and_changes_only_what_it_says(obj: Json, policy: AdmissionPolicy) -> None:
    verdict = mutate(obj, policy=policy)
    assert_changes_only_what_it_says(obj, verdict)
    assert_respells_only_what_needs_it(obj, verdict)


@LAW
@given(wild.pods(), policies)
def test_a_warning_is_short_and_a_message_bounded(obj: Json, policy: AdmissionPolicy) -> None:
    for verdict in (mutate(obj, policy=policy), validate(obj, policy=policy)):
        assert all(len(line) <= 120 and line.isprintable() for line in verdict.warnings)
        assert len(verdict.message.encode()) <= 900
        assert verdict.message.isprintable()
        assert verdict.allowed or not verdict.changes


@LAW
@given(wild.pods(), policies)
def test_an_update_that_changes_nothing_gets_no_patch_and_no_warning(obj: Json, policy: AdmissionPolicy) -> None:
    assert mutate(obj, old=obj, policy=policy) == Verdict()
    assert validate(obj, old=obj, policy=policy) == Verdict()


def defaulted(obj: Json) -> Json:
    """Copies limits to missing requests, like the API server."""
    result = copy.deepcopy(obj)
    spec = result["spec"]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        if limits := container.get("resources", {}).get("limits"):
            container["resources"]["requests"] = {**limits, **(container["resources"].get("requests") or {})}
    return result


def amounts(obj: Json) -> list[Any]:
    spec = obj["spec"]
    return [
        {
            side: {key: text for key, text in (side_amounts or {}).items() if key in COUNTED}
            for side, side_amounts in found
        }
        for container in (*spec["containers"], *spec.get("initContainers", ()))
        if (found := [(side, container.get("resources", {}).get(side)) for side in ("limits", "requests")])
    ]


@LAW
@given(wild.pods(), policies)
def test_the_same_file_applies_a_second_time(obj: Json, policy: AdmissionPolicy) -> None:
    sent = defaulted(obj)
    verdict = mutate(sent, policy=policy)
    assume(verdict.allowed)
    stored = patched(sent, verdict)
    again = mutate(sent, old=stored, policy=policy)
    assume(again.allowed)
    assert_changes_only_what_it_says(sent, again)
    assert all("resources" in operation["path"] for operation in operations(again))
    for now, before in zip(amounts(patched(sent, again)), amounts(stored), strict=True):
        for side in ("limits", "requests"):
            now_parsed = {key: Quantity.parse(str(text).strip()) for key, text in now[side].items()}
            assert now_parsed == {key: Quantity.parse(str(text).strip()) for key, text in before[side].items()}


# --- workloads ----------------------------------------------------------------------------------------------------


def both_calls(obj: Json) -> tuple[Verdict, Verdict]:
    first = judge(names.MUTATE_WORKLOADS_PATH, obj, kind=obj["kind"])
    second = judge(names.VALIDATE_WORKLOADS_PATH, patched(obj, first), kind=obj["kind"])
    return first, second


@LAW
@given(wild.workloads())
def test_a_template_is_respelled_where_needed_and_gets_no_field(obj: Json) -> None:
    first, second = both_calls(obj)
    assert_changes_only_what_it_says(obj, first)
    assert_respells_only_what_needs_it(obj, first)
    assert {path for path, _ in leaves(obj)} == {path for path, _ in leaves(patched(obj, first))}
    assert all(operation["op"] == "replace" for operation in operations(first))
    if first.allowed:
        assert second.allowed, second.message
        assert judge(names.MUTATE_WORKLOADS_PATH, patched(obj, first), kind=obj["kind"]).changes == ()


@LAW
@given(wild.workloads())
def test_an_unchanged_workload_gets_no_patch_and_no_warning(obj: Json) -> None:
    for path in (names.MUTATE_WORKLOADS_PATH, names.VALIDATE_WORKLOADS_PATH):
        assert judge(path, obj, old=obj, kind=obj["kind"]) == Verdict()


# --- quotas -------------------------------------------------------------------------------------------------------


@LAW
@given(wild.quotas())
def test_a_quota_settles_in_one_pass_and_keeps_the_written_keys(obj: Json) -> None:
    verdict = judge(names.MUTATE_QUOTAS_PATH, obj, kind="ResourceQuota")
    assert all(len(line) <= 120 for line in verdict.warnings)
    assume(verdict.allowed)
    after = patched(obj, verdict)
    assert judge(names.MUTATE_QUOTAS_PATH, after, kind="ResourceQuota").changes == ()
    assert_changes_only_what_it_says(obj, verdict)
    written, hard = obj["spec"]["hard"], after["spec"]["hard"]
    assert {key for key in written if not key.startswith("requests.")} <= hard.keys()
    for resource in GPU:
        found = [hard[key] for key in (resource, f"limits.{resource}") if key in hard]
        if found:
            counted = Quantity.parse(str(hard[f"requests.{resource}"]))
            assert counted <= min(Quantity.parse(str(text).strip()) for text in found)


# --- bytes --------------------------------------------------------------------------------------------------------

APP = admission_app(
    policy=AdmissionPolicy(),
    cluster=lambda: NOTHING_KNOWN,
    metrics=WebhookMetrics(CollectorRegistry()),
    log=Log(stream=io.StringIO()),
)
paths = st.sampled_from(sorted(STAGES))
kinds = st.sampled_from(["Pod", "Deployment", "CronJob", "ResourceQuota", "Other"])


def timed(path: str, body: bytes) -> tuple[Answer, float]:
    start = time.process_time()
    return ask(APP, path, body), time.process_time() - start


def assert_answered(path: str, body: bytes) -> None:
    answer, seconds = timed(path, body)
    if seconds > 0.1:  # the garbage collector may run once; a second time is our fault
        answer, seconds = timed(path, body)
    assert seconds < 0.1
    assert answer.status in {200, 400}
    if answer.status == 200:
        assert json.loads(answer.body)["response"]["allowed"] in {True, False}


def review(kind: str, obj: Any, old: Any, group: str = "") -> bytes:
    named = {"group": group, "kind": kind}
    request = {"uid": "1", "operation": "UPDATE" if old else "CREATE", "kind": named, "object": obj}
    whole = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request | {"oldObject": old}}
    return json.dumps(whole).encode()


@LAW
@given(paths, st.binary(max_size=300))
def test_arbitrary_bytes_are_answered_at_once_and_never_with_5xx(path: str, body: bytes) -> None:
    assert_answered(path, body)


@LAW
@given(paths, kinds, st.one_of(wild.json_values, wild.pods(), wild.workloads()), wild.json_values)
def test_arbitrary_objects_are_answered_at_once_and_never_with_5xx(path: str, kind: str, obj: Any, old: Any) -> None:
    assert_answered(path, review(kind, obj, old))


@LAW
@given(paths, wild.odd_objects(), st.booleans())
def test_a_field_of_any_shape_is_answered_at_once_and_never_with_5xx(path: str, obj: Json, twice: bool) -> None:  # noqa: FBT001
    group = str(obj.get("apiVersion")).rpartition("/")[0]
    assert_answered(path, review(str(obj.get("kind")), obj, obj if twice else None, group))


@LAW
@given(wild.pods(), st.data())
def test_a_damaged_review_is_answered_at_once_and_never_with_5xx(obj: Json, data: st.DataObject) -> None:
    whole = review("Pod", obj, None)
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 20)))
    junk = data.draw(st.one_of(st.binary(max_size=4), st.sampled_from([b'"', b"}", b"null", b"\\ud800", b"1e999"])))
    assert_answered(names.MUTATE_PODS_PATH, whole[:start] + junk + whole[end:])
