"""What `halfcard review` says of single objects."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admission.policy import AdmissionPolicy
from admission.policy_settings import policy_of
from cli.judge import Item, Judge
from cli.output.terminal import Screen
from cli.reviewing import review_text
from cli.reviewing.review_report import reviewed
from halfcard.cluster_view import NOTHING_KNOWN
from halfcard.pod.holders import BUILT_IN, WELL_KNOWN
from halfcard.problems import Severity
from kube.manifests.documents import Document, parse
from settings.installation import read_settings
from tests.admission import wild
from tests.builders import Json, gpu, pod_of

JUDGE = Judge(AdmissionPolicy(), NOTHING_KNOWN)


def judged(obj: Any, judge: Judge = JUDGE) -> Item:
    return reviewed(judge, Document(obj, "x.yaml", 1)).item


def problems(text: str) -> list[str]:
    (document,) = parse(text, "x.yaml")
    return [str(problem) for problem in judged(document.obj).verdict.problems]


# --- custom resources ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted({**BUILT_IN, **WELL_KNOWN}))
def test_a_mistake_in_any_known_kind_with_pods_is_refused_at_its_place(kind: str) -> None:
    (path, *_) = {**BUILT_IN, **WELL_KNOWN}[kind]

    (problem,) = judged(wild.holding(kind, pod_of(gpu("1.5")))).verdict.problems

    assert problem.code == "HC002"
    assert problem.where.replace("[0]", ".*").startswith(path)
    assert problem.where.endswith('spec.containers[0].resources.limits["tencent.com/vcuda-core"]')


KSERVE = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: m, namespace: a}
spec:
  predictor:
    %s
"""
ARGO = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
spec:
  templates:
  - name: dag
    dag: {tasks: []}
  - name: train
    initContainers: [{name: i, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]
    %s
"""
WRONG = '{name: c, resources: {limits: {tencent.com/vcuda-core: "150"}}}'


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (KSERVE % f"containers: [{WRONG}]", ["spec.predictor.containers[0].resources"]),
        (KSERVE % f"model: {WRONG}", ["spec.predictor.model.resources"]),
        (KSERVE % f"workerSpec: {{containers: [{WRONG}]}}", ["spec.predictor.workerSpec.containers[0].resources"]),
        (ARGO % f"container: {WRONG}", ["spec.templates[1].initContainers[0].env", "spec.templates[1].container."]),
        (ARGO % f"script: {WRONG}", ["spec.templates[1].initContainers[0].env", "spec.templates[1].script."]),
        (ARGO % f"sidecars: [{WRONG}]", ["spec.templates[1].initContainers[0].env", "spec.templates[1].sidecars[0]."]),
        (ARGO % "dag: {}", ["spec.templates[1].initContainers[0].env[0]"]),
    ],
)
def test_specs_and_single_containers_are_judged_at_their_place(text: str, where: list[str]) -> None:
    found = problems(text)

    assert len(found) == len(where)
    for problem, start in zip(sorted(found), sorted(where), strict=True):
        assert problem.startswith(start)


def test_amounts_in_a_custom_resource_are_repaired_where_they_are() -> None:
    container = {
        "name": "c",
        "resources": {"limits": {"tencent.com/vcuda-core": "0.3", "tencent.com/vcuda-memory": "5Gi"}},
    }
    item = judged(
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "spec": {"predictor": {"model": container}},
        }
    )

    assert [change.as_json()["path"] for change in item.verdict.changes] == [
        "/spec/predictor/model/resources/limits/tencent.com~1vcuda-core",
        "/spec/predictor/model/resources/limits/tencent.com~1vcuda-memory",
    ]


def test_the_setting_for_templates_is_that_of_custom_resources_too() -> None:
    warning = Judge(AdmissionPolicy(templates=Severity.WARN), NOTHING_KNOWN)

    item = judged(wild.holding("ray.io/RayCluster", pod_of(gpu("1.5"))), warning)

    assert item.allowed is True
    assert "[HC002]" in item.verdict.warnings[0]


TRAINER = {"apiVersion": "example.com/v1", "kind": "Trainer", "spec": {"workers": [{"template": pod_of(gpu("1.5"))}]}}


def test_an_unknown_custom_resource_is_not_judged_until_a_setting_names_its_paths() -> None:
    def allowed(paths: list[str]) -> bool | None:
        policy = policy_of(read_settings({"pod_templates": {"example.com/Trainer": paths}}))
        return judged(TRAINER, Judge(policy, NOTHING_KNOWN)).allowed

    assert allowed(["spec.workers.*.template"]) is False
    assert allowed([]) is True
    assert judged(TRAINER).allowed is None
    assert judged(TRAINER).not_judged == (
        "Halfcard does not know where example.com/Trainer has pod templates. Name their paths in the setting"
        " pod_templates, or [] if it has none. Its pods are judged when they are created"
    )


def test_a_misspelled_custom_kind_is_named() -> None:
    item = judged({"apiVersion": "kubeflow.org/v1", "kind": "PytorchJob"})

    assert item.allowed is None
    assert ". Did you mean kubeflow.org/PyTorchJob? If not, name their paths" in str(item.not_judged)


OWN_KINDS = {"GPUQuota": "GpuQuota", "GpuQuotas": "GpuQuota", "clustergpuquota": "ClusterGpuQuota"}


@pytest.mark.parametrize(("written", "meant"), OWN_KINDS.items())
def test_a_misspelled_kind_of_our_own_is_refused(written: str, meant: str) -> None:
    item = judged({"apiVersion": "halfcard.dev/v1alpha1", "kind": written, "spec": {"hard": {"cards": 1}}})

    assert [problem.fix for problem in item.verdict.problems] == [f"write {meant}"]


# --- what cannot be read ---------------------------------------------------------------------------------------------


HOW = "docs/quota.md shows how to write it"


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_claim_of_a_gpu_class_is_refused(kind: str) -> None:
    spec = "{devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}"
    spec = spec if kind == "ResourceClaim" else f"{{spec: {spec}}}"

    (found,) = problems(f"apiVersion: resource.k8s.io/v1\nkind: {kind}\nmetadata: {{name: c}}\nspec: {spec}\n")

    assert "deviceClassName" in found and "[HC017]" in found


READABLE = "Kubernetes or Halfcard must be able to read this"
TYPED = "a field must have the type that Kubernetes gives it"
QUOTA = "apiVersion: halfcard.dev/v1alpha1\nkind: GpuQuota\nspec: "
MAP = "kind: ConfigMap\nmetadata: {name: gpuquota, namespace: kube-system}\ndata: {gpu_quota: '%s'}\n"
SLICING = """\
kind: ConfigMap
metadata: {name: slicing}
data: {any: "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: %d}]}}"}
"""
SENTENCES = {
    "apiVersion: apps/v1\nkind: Deploymnt\n": f'kind: got "Deploymnt"; {READABLE}; write Deployment [HC032]',
    "apiVersion: v1\nkind: Frob\n": f'kind: got "Frob"; {READABLE}; correct kind: or apiVersion: [HC032]',
    '{"kind": "Deployment", "spec": []}': f'spec: got "array"; {TYPED}; write object [HC031]',
    '{"kind": "Deployment", "metadata": []}': f'metadata: got "array"; {TYPED}; write object [HC031]',
    "kind: Job\nspec: {template: {spec: {containers: {}}}}\n": (
        f'spec.template.spec.containers: got "object"; {TYPED}; write array [HC031]'
    ),
    QUOTA + "{hard: {bogus: -3}}": (
        f'spec.hard.bogus: got "-3"; {READABLE}; remove it; a quota has cores, memory, cards, shares here [HC032]'
    ),
    QUOTA + "{hard: {core: 3}}": f'spec.hard.core: got "3"; {READABLE}; write cores [HC032]',
    QUOTA + "{byModel: {T4: {memory: -5Gi}}}": (
        f'spec.byModel.T4.memory: got "-5Gi"; {READABLE}; write 0 to allow nothing, or an amount above 0 [HC032]'
    ),
    QUOTA + "{onExceeded: Wait}": (
        f"spec.onExceeded: got \"Wait\"; {READABLE}; Invalid enum value 'Wait'; {HOW} [HC032]"
    ),
    QUOTA + "{hard: {cores: x}}": (
        f'spec.hard.cores: got "x"; {READABLE}; Expected int | null, got str; {HOW} [HC032]'
    ),
    QUOTA + "3": f'spec: got "3"; {READABLE}; Expected object, got int; {HOW} [HC032]',
    MAP % "no": (
        f'data.gpu_quota: got "no"; {READABLE}; '
        'write it like {"team-a": {"quota": {"T4": 8}, "pool": ["public"]}} [HC032]'
    ),
    MAP % '{"a": {"quota": {"T4": -1}}, "b": {"quota": {"T4": 1}}}': (
        f'data.gpu_quota: got "a"; {READABLE}; this namespace has no limit now: '
        "quota of 'T4': got -1; so many cards are not below 0 and not above 10000000 [HC032]"
    ),
    SLICING % 1: (
        f'data.any: sharing.timeSlicing.resources[0].replicas: got "1"; {READABLE}; '
        "it is a whole number from 2 to 1024; write replicas: 4, or take the resource out for whole cards [HC032]"
    ),
}


@pytest.mark.parametrize("text", SENTENCES)
def test_what_nothing_could_read_is_refused_with_a_sentence(text: str) -> None:
    assert problems(text) == [SENTENCES[text]]


@pytest.mark.parametrize(
    "text",
    [
        QUOTA + "{hard: {cores: 300, memory: 64Gi}, onExceeded: Gate, exemption: null}\n",
        QUOTA.replace("Gpu", "ClusterGpu") + "{namespaces: {names: [a], selector: {matchLabels: {b: c}}}}\n",
        MAP % '{"a": {"quota": {"T4": 1}}}',
        SLICING % 4,
        "kind: ConfigMap\nmetadata: {name: s}\ndata: {any: text}\n",
        "apiVersion: v1\nkind: Service\n",
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\n",
    ],
)
def test_what_can_be_read_is_allowed(text: str) -> None:
    (document,) = parse(text, "x.yaml")
    assert judged(document.obj).allowed is True


# --- laws ------------------------------------------------------------------------------------------------------------

LAW = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CONFIGURED: list[Json] = [
    {"kind": "GpuQuota", "apiVersion": "halfcard.dev/v1alpha1", "spec": {"byModel": {"T4": {"cards": 1}}}},
    {"kind": "ConfigMap", "metadata": {"name": "gpuquota", "namespace": "kube-system"}, "data": {"gpu_quota": "{}"}},
    {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"any": "sharing: {timeSlicing: {resources: [{}]}}"}},
]


@LAW
@given(wild.odd_objects(st.sampled_from(CONFIGURED)))
def test_any_json_in_any_place_gets_a_sentence(obj: Json) -> None:
    item = judged(obj)

    json.dumps(item.as_json())
    review_text._print_item(Screen(io.StringIO(), coloured=False), item, "x.yaml:1")
    for problem in item.verdict.problems:
        assert problem.where and problem.rule and problem.fix
        assert str(problem).isprintable()
