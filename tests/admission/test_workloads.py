from __future__ import annotations

import copy
from typing import Any

import pytest

from admission.policy import AdmissionPolicy
from admission.verdict import Verdict
from halfcard import names
from halfcard.pod.holders import BUILT_IN
from halfcard.problems import Severity
from tests.builders import Json, container, gpu, pod_of

from .judging import CORE, CORE_LIMIT, MEMORY, changed, codes, judge, operations, patched, warned_codes

KINDS = {
    "Deployment": "spec.template",
    "StatefulSet": "spec.template",
    "DaemonSet": "spec.template",
    "ReplicaSet": "spec.template",
    "ReplicationController": "spec.template",
    "Job": "spec.template",
    "CronJob": "spec.jobTemplate.spec.template",
    "PodTemplate": "template",
}
WARNING = AdmissionPolicy(templates=Severity.WARN)


def workload(kind: str, template: Json, **metadata: Any) -> Json:
    result: Json = {"template": copy.deepcopy(template)}
    if kind == "CronJob":
        result = {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": result}}}
    elif kind != "PodTemplate":
        result = {"spec": {"replicas": 2, **result}}
    return {"kind": kind, "metadata": {"name": "w", **metadata}, **result}


def deployment(*containers: Json, **template: Any) -> Json:
    return workload("Deployment", pod_of(*containers, **template))


def mutate(obj: Json, **context: Any) -> Verdict:
    return judge(names.MUTATE_WORKLOADS_PATH, obj, kind=obj["kind"], **context)


def validate(obj: Json, **context: Any) -> Verdict:
    return judge(names.VALIDATE_WORKLOADS_PATH, obj, kind=obj["kind"], **context)


def containers_in(obj: Json) -> list[Json]:
    found: Any = obj
    for part in (*KINDS[obj["kind"]].split("."), "spec", "containers"):
        found = found[part]
    result: list[Json] = found
    return result


def test_these_kinds_hold_templates() -> None:
    assert {key.rpartition("/")[2]: path for key, (path,) in BUILT_IN.items()} == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_mistake_in_a_template_is_refused_at_its_place(kind: str) -> None:
    obj = workload(kind, pod_of(container(), gpu("1.5")))
    for verdict in (mutate(obj), validate(obj)):
        (problem,) = verdict.problems
        assert problem.code == "HC002"
        assert problem.where.startswith(f"{KINDS[kind]}.spec.containers[1].resources")


@pytest.mark.parametrize("kind", KINDS)
def test_existing_fields_are_repaired_and_none_is_added(kind: str) -> None:
    obj = workload(kind, pod_of(container({CORE: "0.3", MEMORY: "5Gi", "cpu": "0.5"}), container()))
    verdict = mutate(obj)
    wanted = workload(kind, pod_of(container({CORE: "30", MEMORY: "20", "cpu": "0.5"}), container()))
    assert patched(obj, verdict) == wanted
    assert verdict.warnings == ()
    assert validate(wanted).allowed
    assert mutate(wanted).changes == ()


def test_both_sides_are_repaired_where_both_are_written() -> None:
    obj = deployment(container({CORE: "30", MEMORY: "20"}, {CORE: "0.3", MEMORY: "20"}))
    assert operations(mutate(obj)) == [
        {
            "op": "replace",
            "path": "/spec/template/spec/containers/0/resources/requests/tencent.com~1vcuda-core",
            "value": "30",
        }
    ]


def test_rounding_and_small_integers_get_a_warning_when_the_workload_is_applied() -> None:
    verdict = mutate(deployment(container({CORE: "2", MEMORY: "5000Mi"})))
    assert verdict.allowed
    assert warned_codes(verdict) == ["HC044"]
    assert any("rounded up" in line for line in verdict.warnings)
    assert all(len(line) <= 120 for line in verdict.warnings)


@pytest.mark.parametrize(
    "template",
    [
        pod_of(container({CORE: "30", MEMORY: "20"})),
        pod_of(container(requests={CORE: "30", MEMORY: "20"})),
        pod_of(container({names.HAMI_GPUMEM: "3000"})),
        pod_of(gpu(), container(), annotations={CORE_LIMIT: "30"}),
    ],
)
def test_a_template_never_gets_a_derived_field(template: Json) -> None:
    obj = workload("Deployment", template)
    assert mutate(obj).changes == ()
    assert validate(obj).allowed


def test_a_foreign_unit_is_refused_where_the_mutating_call_did_not_happen() -> None:
    assert codes(validate(deployment(container({CORE: "0.3", MEMORY: "5Gi"})))) == ["HC005"]


@pytest.mark.parametrize(
    ("obj", "wanted"),
    [
        (deployment(container(env=[{"name": names.VISIBLE_DEVICES, "value": "all"}])), ["HC021"]),
        (deployment(container(), volumes=[{"name": "v", "hostPath": {"path": "/dev"}}]), ["HC024"]),
        (deployment(gpu(), annotations={"tencent.com/gpu-assigned": "true"}), ["HC020"]),
        (deployment(gpu(), annotations={CORE_LIMIT: "5"}), ["HC009"]),
        (deployment(gpu(), nodeName="n"), ["HC026"]),
        (deployment(gpu(), hostPID=True), ["HC025"]),
        (deployment(gpu("30", None), gpu(None, "3")), ["HC006", "HC007"]),
    ],
)
def test_the_rules_are_those_of_pods(obj: Json, wanted: list[str]) -> None:
    assert codes(mutate(obj)) == codes(validate(obj)) == wanted


def test_a_setting_turns_refusals_into_warnings() -> None:
    obj = deployment(gpu("1.5"), container({CORE: "0.3", MEMORY: "20"}))
    verdict = mutate(obj, policy=WARNING)
    assert verdict.allowed
    assert warned_codes(verdict) == ["HC002"]
    assert containers_in(patched(obj, verdict))[1]["resources"]["limits"][CORE] == "30"
    assert warned_codes(validate(obj, policy=WARNING)) == ["HC002", "HC005"]


def test_a_setting_turns_templates_off() -> None:
    obj = deployment(gpu("1.5"))
    assert mutate(obj, policy=AdmissionPolicy(templates=Severity.OFF)) == Verdict()


def test_different_amounts_are_not_repaired_where_they_get_only_a_warning() -> None:
    obj = deployment(container({CORE: "0.3", MEMORY: "20"}, {CORE: "40", MEMORY: "20"}))
    verdict = mutate(obj, policy=WARNING)
    assert warned_codes(verdict) == ["HC004"]
    assert verdict.changes == ()


@pytest.mark.parametrize(("controller", "judged"), [(True, False), (False, True), (None, True)])
def test_objects_of_a_controller_are_not_judged(controller: bool | None, judged: bool) -> None:  # noqa: FBT001
    owner = {"kind": "Deployment", "name": "d", "controller": controller}
    obj = workload("ReplicaSet", pod_of(gpu("1.5")), ownerReferences=[owner])
    assert bool(mutate(obj).problems) is judged
    assert bool(validate(obj).problems) is judged


def test_an_update_is_judged_only_by_what_it_changes() -> None:
    old = deployment(gpu("1.5"), gpu("0.3"))
    scaled = changed(old, "spec", "replicas", to=5)
    for verdict in (mutate(scaled, old=old), validate(scaled, old=old)):
        assert verdict == Verdict()
    assert codes(validate(deployment(gpu("2.5"), gpu("0.3")), old=old)) == ["HC002"]


def test_the_same_file_applies_a_second_time() -> None:
    """Otherwise every apply would roll out the workload again."""
    written = deployment(container({CORE: "0.3", MEMORY: "5Gi"}))
    stored = patched(written, mutate(written))
    assert patched(written, mutate(written, old=stored)) == stored


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("empty", [{}, {"spec": None}, {"spec": {}}, {"metadata": None}])
def test_a_workload_without_a_template_is_admitted(kind: str, empty: Json) -> None:
    obj = {"kind": kind, **empty}
    assert mutate(obj) == validate(obj) == Verdict()
