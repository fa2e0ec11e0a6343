from __future__ import annotations

import pytest

from admission.policy import AdmissionPolicy
from admission.review import verdict_of
from admission.verdict import Verdict
from halfcard import names
from halfcard.problems import CORES, SCHEDULER, Severity
from tests.builders import Json, container, gpu, pod_of

from .judging import CORE, CORE_LIMIT, TENANT, changed, codes, mutate, mutated, patched, validate, warned_codes

ALL_CARDS = [{"name": names.VISIBLE_DEVICES, "value": "all"}]
BAD = pod_of(
    container(env=ALL_CARDS),
    {**gpu("30", None), "env": [{"name": "LD_PRELOAD", "value": "x"}]},
    annotations={CORE_LIMIT: "5"},
    volumes=[{"name": "v", "hostPath": {"path": "/dev"}}],
    nodeName="n1",
    hostPID=True,
)

# --- an update answers only for what it changes -------------------------------------------------------------------


def test_the_bad_pod_of_these_tests_breaks_many_rules() -> None:
    assert codes(validate(BAD)) == ["HC006", "HC009", "HC021", "HC022", "HC024", "HC025", "HC026"]


@pytest.mark.parametrize(
    "update",
    [
        changed(BAD, "metadata", "finalizers", to=[]),
        changed(BAD, "metadata", "labels", to={"a": "b"}),
        changed(BAD, "metadata", "annotations", "note", to="x"),
        changed(BAD, "spec", "activeDeadlineSeconds", to=5),
    ],
)
def test_a_finalizer_can_be_removed_from_a_pod_that_breaks_every_rule(update: Json) -> None:
    for verdict_now in (mutate(update, old=BAD), validate(update, old=BAD)):
        assert verdict_now.allowed
        assert verdict_now.warnings == ()


@pytest.mark.parametrize(
    ("update", "wanted"),
    [
        (changed(BAD, "metadata", "annotations", CORE_LIMIT, to="6"), ["HC009"]),
        (changed(BAD, "metadata", "annotations", "halfcard.dev/card", to="0"), ["HC020"]),
        (changed(BAD, "spec", "ephemeralContainers", to=[container(env=ALL_CARDS)]), ["HC021"]),
        (changed(BAD, "spec", "nodeName", to="n2"), ["HC026"]),
    ],
)
def test_an_update_is_refused_for_new_problems_only(update: Json, wanted: list[str]) -> None:
    assert codes(validate(update, old=BAD)) == wanted
    assert codes(mutate(update, old=BAD)) == wanted


def test_an_update_that_fixes_problems_is_admitted() -> None:
    assert validate(changed(BAD, "metadata", "annotations", to={}), old=BAD).allowed


def test_a_warning_is_not_repeated_on_every_update() -> None:
    obj = pod_of(gpu("5"), schedulerName="other")
    assert warned_codes(mutate(obj)) == ["HC043", "HC044"]
    update = changed(obj, "metadata", "labels", to={"a": "b"})
    assert mutate(update, old=obj).warnings == validate(update, old=obj).warnings == ()


# --- what is left alone -------------------------------------------------------------------------------------------


MIRROR = changed(BAD, "metadata", "annotations", names.MIRROR_POD, to="hash")


def test_a_mirror_pod_of_a_kubelet_is_not_judged() -> None:
    for judge in (mutate, validate):
        assert judge(MIRROR, user="system:node:n1") == Verdict()
        assert judge(MIRROR, old=MIRROR, user="system:node:n1") == Verdict()


@pytest.mark.parametrize("user", [TENANT, "system:nodes", "node:n1", ""])
def test_a_mirror_pod_of_another_user_is_judged(user: str) -> None:
    for judge in (mutate, validate):
        assert codes(judge(MIRROR, user=user)) == codes(judge(BAD, user=user))


def test_another_pod_of_a_kubelet_is_judged() -> None:
    assert not validate(BAD, user="system:node:n1").allowed


def test_a_pod_without_gpu_gets_no_patch_and_no_warning() -> None:
    assert mutate(pod_of(container(env=[{"name": "A", "value": "b"}]))) == Verdict()


def test_an_empty_object_is_admitted() -> None:
    assert mutate({}) == validate({}) == Verdict()


# --- the verdict --------------------------------------------------------------------------------------------------


def test_a_refused_pod_gets_no_patch() -> None:
    refused = mutate(pod_of(gpu("0.3"), gpu("1.5")))
    assert codes(refused) == ["HC002"]
    assert refused.changes == ()


def test_a_refused_pod_still_gets_its_warnings() -> None:
    assert warned_codes(mutate(pod_of(gpu("1.5"), gpu(), schedulerName="other"))) == ["HC043"]


def test_the_mutating_call_refuses_what_it_cannot_repair_with_all_problems() -> None:
    assert codes(mutate(BAD)) == codes(validate(BAD))


def test_the_message_is_one_line_of_bounded_size_with_the_codes() -> None:
    text = mutate(pod_of(*(gpu(f"{n}.5") for n in range(1, 60)))).message
    assert len(text.encode()) <= 900
    assert "\n" not in text
    assert "[HC002]" in text
    assert "more)" in text


def test_text_of_users_cannot_control_a_terminal() -> None:
    refused = validate(pod_of(container({CORE: "\x1b[2J\n"}), annotations={"halfcard.dev/\x07": "\r\x1b"}))
    assert not refused.allowed
    assert refused.message.isprintable()


@pytest.mark.parametrize(
    ("at_most", "refused", "warnings"),
    [(Severity.DENY, 1, 1), (Severity.WARN, 0, 2), (Severity.OFF, 0, 0)],
)
def test_problems_of_templates_can_be_less_severe(at_most: Severity, refused: int, warnings: int) -> None:
    problems = [CORES.broken("a", "b", "c"), SCHEDULER.broken("a", "b", "c")]
    milder = verdict_of(problems, AdmissionPolicy(), at_most=at_most)
    assert (len(milder.problems), len(milder.warnings)) == (refused, warnings)


def test_the_same_warning_is_given_once() -> None:
    problem = SCHEDULER.broken("a", "b", "c")
    assert len(verdict_of([problem, problem], AdmissionPolicy()).warnings) == 1


def test_a_second_pass_has_no_patch() -> None:
    obj = pod_of(gpu("0.3", "5000Mi"), container(), init=[gpu("0.3", "1")], annotations={"a": "b"})
    once = mutated(obj)
    assert once != obj
    assert mutate(once).changes == ()
    assert patched(once, mutate(once)) == once


OURS, THEIRS = {"name": names.QUOTA_GATE}, {"name": "their.own/gate"}
GATED = mutated(pod_of(gpu(), schedulingGates=[OURS, THEIRS]))
OPENED = changed(GATED, "spec", "schedulingGates", to=[THEIRS])


@pytest.mark.parametrize("user", ["alice", "peer-agent", names.EXTENDER_SERVICE_ACCOUNT])
def test_only_the_quota_service_removes_the_gate_of_a_quota(user: str) -> None:
    refused = validate(OPENED, old=GATED, user=user)
    assert codes(refused) == ["HC028"]
    assert 'spec.schedulingGates: got "halfcard.dev/quota removed"' in refused.message


@pytest.mark.parametrize("left", [[THEIRS], []], ids=["beside another", "the only one"])
def test_an_update_that_lacks_the_gate_of_a_quota_keeps_it(left: list[Json]) -> None:
    again = changed(GATED, "spec", "schedulingGates", to=left)
    verdict = mutate(again, old=GATED, user="alice")
    kept = patched(again, verdict)
    assert kept["spec"]["schedulingGates"] == [*left, OURS]
    assert warned_codes(verdict) == ["HC028"]
    assert validate(kept, old=GATED, user="alice").allowed
    assert mutate(OPENED, old=GATED, user=names.QUOTA_SERVICE_ACCOUNT).changes == ()
    assert mutate(OPENED, old=OPENED, user="alice").changes == ()


def test_the_quota_service_removes_its_gate_and_all_users_remove_others() -> None:
    assert validate(OPENED, old=GATED, user=names.QUOTA_SERVICE_ACCOUNT).allowed
    assert validate(changed(GATED, "spec", "schedulingGates", to=[OURS]), old=GATED).allowed
    assert validate(OPENED, user="alice").allowed
