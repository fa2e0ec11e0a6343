"""The law between match conditions and rules: no write that a rule refuses is kept away from the webhook."""

from __future__ import annotations

import copy
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admission.policy import AdmissionPolicy
from halfcard import names
from halfcard.dialects import Dialects
from halfcard.pod.holders import BUILT_IN
from halfcard.ways_to_cards import ANNOTATIONS, MOUNTS, VARIABLES
from halfcard.webhook_configurations import configurations
from tests import cel
from tests.builders import Json, container, gpu, pod_of

from . import wild
from .judging import judge, mutate, validate

LAW: Final = settings(max_examples=80, deadline=None)
EXPRESSIONS: Final = {
    hook["clientConfig"]["service"]["path"]: [each["expression"] for each in hook["matchConditions"]]
    for configuration in configurations(Dialects(), exempt=AdmissionPolicy().exempt_namespaces)
    for hook in configuration["webhooks"]
}
REQUEST: Final = {"operation": "CREATE", "userInfo": {"username": "alice"}, "kind": {"group": ""}}


def is_sent(path: str, obj: Json, old: Json | None = None) -> bool:
    scope = {"object": stored(obj), "oldObject": None if old is None else stored(old), "request": REQUEST}
    return all(cel.evaluate(expression, **scope) for expression in EXPRESSIONS[path])


def stored(value: Any) -> Any:
    """Leaves out what the API server leaves out: null, except in what the API requires."""
    if isinstance(value, dict):
        return {key: stored(part) for key, part in value.items() if part is not None}
    return [stored(part) for part in value] if isinstance(value, list) else value


# --- pods that reach for cards in any way --------------------------------------------------------------------------

PATH_PARTS: Final = (
    *("", ".", "dev", "var", "run", "lib", "etc", "log", "opt", "usr", "sys", "kubelet", "nvidia0", "cdi", "data"),
    *("proc", "1", "root", "pods", "cni", "shm", "localtime"),
)
texts = st.sampled_from(["", "all", "void", "1", "8.0"])
variables = st.sampled_from([row.name for row in VARIABLES])
prefixes = st.sampled_from(["", "N", "NVIDIA_", "CUDA_", "CUDA_VERSION", "DOCKER_", "LD_", "APP_"])
parts = st.lists(st.sampled_from(PATH_PARTS), max_size=6).map(lambda each: "/" + "/".join(each))
keys = st.builds(
    str.__add__, st.sampled_from([row.text for row in ANNOTATIONS]), st.sampled_from(["", "/pod", ".main", "x"])
)
containers = st.fixed_dictionaries(
    {"name": st.just("c")},
    optional={
        "env": st.lists(
            st.fixed_dictionaries(
                {"name": st.sampled_from([row.name for row in VARIABLES])}, optional={"value": texts}
            ),
            max_size=2,
        ),
        "envFrom": st.lists(st.fixed_dictionaries({"prefix": prefixes, "secretRef": st.just({})}), max_size=1),
        "volumeMounts": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.just("v"),
                    "mountPath": st.builds(
                        str.__add__, st.sampled_from([row.path for row in MOUNTS]), st.sampled_from(["", "/x", "all"])
                    ),
                }
            ),
            max_size=1,
        ),
        "resources": st.sampled_from(
            [
                {},
                {"limits": {names.NVIDIA_GPU: "1"}},
                {"requests": {"cpu": "1"}},
                {"limits": {names.DEVICE_CLASS_PREFIX + names.GPU_DEVICE_CLASSES[0]: "1"}},
            ]
        ),
    },
)


@st.composite
def reaching(draw: st.DrawFn) -> Json:
    """Generates a pod that has few things, each of which may be a way to a card."""
    obj = pod_of(*draw(st.lists(containers, min_size=1, max_size=2)))
    obj["metadata"] |= draw(
        st.fixed_dictionaries({}, optional={"annotations": st.dictionaries(keys, st.just("x"), max_size=1)})
    )
    obj["spec"] |= draw(
        st.fixed_dictionaries(
            {},
            optional={
                "initContainers": st.lists(containers, max_size=1),
                "ephemeralContainers": st.lists(containers, max_size=1),
                "resourceClaims": st.sampled_from([[], [{"name": "c"}]]),
                "runtimeClassName": st.sampled_from(["nvidia", "my-nvidia-cdi", "kata"]),
                "volumes": st.lists(
                    st.fixed_dictionaries({"hostPath": st.fixed_dictionaries({"path": parts})}), max_size=1
                ),
            },
        )
    )
    return copy.deepcopy(obj)


@LAW
@given(reaching())
def test_a_new_pod_that_a_rule_refuses_or_repairs_is_sent(obj: Json) -> None:
    if not validate(obj).allowed:
        assert is_sent(names.VALIDATE_PODS_PATH, obj)
    if (verdict := mutate(obj)).changes or not verdict.allowed:
        assert is_sent(names.MUTATE_PODS_PATH, obj)


@LAW
@given(reaching(), reaching())
def test_a_changed_pod_that_a_rule_refuses_is_sent(obj: Json, old: Json) -> None:
    if not validate(obj, old=old).allowed:
        assert is_sent(names.VALIDATE_PODS_PATH, obj, old)


@LAW
@given(wild.pods())
def test_an_unusual_pod_that_a_rule_refuses_is_sent(obj: Json) -> None:
    if not validate(obj).allowed:
        assert is_sent(names.VALIDATE_PODS_PATH, obj)


@LAW
@given(reaching(), st.sampled_from(sorted(BUILT_IN)))
def test_a_template_that_a_rule_refuses_is_sent(obj: Json, key: str) -> None:
    workload: Any = {"metadata": obj["metadata"], "spec": obj["spec"]}
    for part in reversed(BUILT_IN[key][0].split(".")):
        workload = {part: workload}
    kind = key.rpartition("/")[2]
    workload = {"kind": kind, "metadata": {"name": "w"}, **workload}
    if not judge(names.VALIDATE_WORKLOADS_PATH, workload, kind=kind).allowed:
        assert is_sent(names.VALIDATE_WORKLOADS_PATH, workload)


@LAW
@given(st.dictionaries(keys, st.just("x"), max_size=2))
def test_a_binding_that_a_rule_refuses_is_sent(annotations: dict[str, str]) -> None:
    obj = {"kind": "Binding", "metadata": {"name": "train", "annotations": annotations}}
    if not judge(names.VALIDATE_RECORDS_PATH, obj, kind="Binding", subresource="binding").allowed:
        assert is_sent(names.VALIDATE_RECORDS_PATH, obj)


@pytest.mark.parametrize(
    "obj",
    [
        pod_of(container()),
        pod_of(container(env=[{"name": "A", "value": "b"}, {"name": "LD_PRELOAD", "value": "x"}])),
        pod_of(container(envFrom=[{"prefix": "APP_", "secretRef": {}}])),
        pod_of(container(volumeMounts=[{"name": "v", "mountPath": "/etc/ld.so.preload"}])),
        pod_of(container(), annotations={"prometheus.io/scrape": "true"}, labels={"app": "web"}),
        pod_of(container(), runtimeClassName="kata", volumes=[{"name": "v", "emptyDir": {}}]),
        pod_of(container(), volumes=[{"name": "v", "hostPath": {"path": "/data/x"}}]),
    ],
)
def test_an_ordinary_pod_is_not_sent(obj: Json) -> None:
    assert not is_sent(names.VALIDATE_PODS_PATH, obj)
    assert not is_sent(names.MUTATE_PODS_PATH, obj)
    assert is_sent(names.VALIDATE_PODS_PATH, gpu_of(obj))


def gpu_of(obj: Json) -> Json:
    return {**obj, "spec": {**obj["spec"], "containers": [gpu()]}}


FOREIGN: Final = {
    "a MIG instance": pod_of(container({"nvidia.com/mig-1g.10gb": "1"})),
    "a vGPU of Volcano in an init container": {
        **pod_of(container()),
        "spec": {"containers": [container()], "initContainers": [container({"volcano.sh/vgpu-number": "1"})]},
    },
    "a fraction of KAI": {**pod_of(container()), "metadata": {"name": "p", "annotations": {"gpu-fraction": "0.5"}}},
}


@pytest.mark.parametrize("obj", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_request_that_another_system_reads_is_sent_only_where_an_outage_stops_nothing(obj: Json) -> None:
    template = {"kind": "Deployment", "spec": {"template": obj}}
    assert is_sent(names.MUTATE_PODS_PATH, obj) and not is_sent(names.VALIDATE_PODS_PATH, obj)
    assert is_sent(names.MUTATE_WORKLOADS_PATH, template)
    assert not is_sent(names.MUTATE_PODS_PATH, pod_of(container({"example.com/fpga": "1"})))
