from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from admission.policy import AdmissionPolicy
from admission.policy_settings import policy_of
from admission.verdict import Verdict
from halfcard import names
from halfcard.cluster_view import ClusterView
from halfcard.pod.owned_annotations import is_owned
from halfcard.problems import Severity
from settings.installation import Settings
from tests.builders import Json, container, gpu, pod_of

from ..judging import AGENT, TRUSTING, changed, codes, judge, mutate, validate, warned_codes

WHOLE = gpu("100", None)


def both_refuse(obj: Json, **context: Any) -> list[str]:
    """Returns the codes, the same from both calls."""
    first, second = codes(mutate(obj, **context)), codes(validate(obj, **context))
    assert first == second
    return second


# --- records ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "owned"),
    [
        ("tencent.com/predicate-time", True),
        ("tencent.com/predicate-gpu-idx-0", True),
        ("tencent.com/gpu-assigned", True),
        ("tuya.com/gpu-assigned", True),
        ("ALIYUN_COM_GPU_MEM_IDX", True),
        ("ALIYUN_COM_GPU_MEM_ASSIGNED", True),
        ("halfcard.dev/card", True),
        ("halfcard.dev/", True),
        ("hami.io/vgpu-node", True),
        ("volcano.sh/gpu-index", True),
        ("tencent.com/vcuda-core-limit", False),
        ("nothalfcard.dev/card", False),
        (names.FENCE, True),
        (names.PLACEMENT, True),
        (names.ASK_POLICY, False),
        (names.ASK_MODEL, False),
        (names.ASK_UUID, False),
        ("predicate-time", False),
        ("app", False),
        ("", False),
        ("/predicate-time", False),
    ],
)
def test_records_are_known_by_their_keys(key: str, owned: bool) -> None:  # noqa: FBT001
    assert is_owned(key) is owned


RECORD = "tencent.com/predicate-node"


@pytest.mark.parametrize("user", sorted(names.OWN_USERS))
def test_halfcards_own_accounts_are_trusted_whatever_the_settings_say(user: str) -> None:
    obj = pod_of(gpu(), annotations={names.FENCE: "1"})
    for policy in (AdmissionPolicy(), policy_of(Settings(trusted_users=["somebody"]))):
        assert validate(obj, user=user, policy=policy).allowed
    assert codes(validate(obj, user=user.replace(names.NAMESPACE, "team-a"))) == ["HC020"]


@pytest.mark.parametrize("key", [names.FENCE, names.PLACEMENT])
@pytest.mark.parametrize("now", [{}, {"note": "mine"}, "forged"])
def test_a_user_cannot_change_the_fence_or_the_record_of_a_waiting_pod(key: str, now: Json | str) -> None:
    old = pod_of(gpu(), annotations={key: "replica-a"})
    new = pod_of(gpu(), annotations={key: now} if isinstance(now, str) else now)
    (problem,) = validate(new, old=old).problems
    assert (problem.code, problem.where) == ("HC020", f'metadata.annotations["{key}"]')
    assert problem.fix == "put it back"


def test_users_may_write_and_change_their_preferences() -> None:
    old = pod_of(gpu(), annotations={names.ASK_MODEL: "T4"})
    assert validate(old).allowed
    assert validate(pod_of(gpu(), annotations={names.ASK_MODEL: "A10", names.ASK_UUID: "GPU-1"}), old=old).allowed
    assert validate(pod_of(gpu(), annotations={}), old=old).allowed


# --- records by a side door ---------------------------------------------------------------------------------------


def binding(annotations: Json | None = None, labels: Json | None = None) -> Json:
    metadata = {"name": "train", "annotations": annotations, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {key: value for key, value in metadata.items() if value is not None},
        "target": {"kind": "Node", "name": "n1"},
    }


def bind(obj: Json, subresource: str = "binding", **context: Any) -> Verdict:
    return judge(names.VALIDATE_RECORDS_PATH, obj, kind="Binding", subresource=subresource, **context)


@pytest.mark.parametrize("subresource", ["binding", ""])
@pytest.mark.parametrize("field", ["annotations", "labels"])
@pytest.mark.parametrize("key", [RECORD, names.FENCE, names.PLACEMENT, "ALIYUN_COM_GPU_MEM_IDX"])
def test_a_binding_brings_no_record_into_a_pod_unless_its_author_is_trusted(
    subresource: str, field: str, key: str
) -> None:
    obj = binding(**{field: {key: "0", "note": "mine"}})
    (problem,) = bind(obj, subresource).problems
    assert (problem.code, problem.where, problem.fix) == ("HC020", f'metadata.{field}["{key}"]', "remove it")
    assert bind(obj, subresource, user=AGENT, policy=TRUSTING).allowed
    assert bind(obj, subresource, user=names.EXTENDER_SERVICE_ACCOUNT).allowed


def test_a_binding_is_refused_with_the_message_of_a_pod() -> None:
    annotations = {RECORD: "n1"}
    assert bind(binding(annotations)).message == validate(pod_of(container(), annotations=annotations)).message


@pytest.mark.parametrize("annotations", [None, {}, {"note": "mine", names.ASK_POLICY: "spread"}])
def test_a_binding_without_a_record_is_admitted_from_any_scheduler(annotations: Json | None) -> None:
    assert bind(binding(annotations)) == Verdict()


def test_a_binding_cannot_list_devices() -> None:
    assert codes(bind(binding({"cdi.k8s.io/x": "nvidia.com/gpu=all"}))) == ["HC027"]


def test_a_binding_with_the_mirror_annotation_is_judged() -> None:
    assert codes(bind(binding({names.MIRROR_POD: "hash", RECORD: "n1"}))) == ["HC020"]


@pytest.mark.parametrize(
    ("before", "now"), [({}, {RECORD: "n1"}), ({RECORD: "n1"}, {RECORD: "n2"}), ({RECORD: "n1"}, {})]
)
def test_a_status_brings_no_record_along(before: Json, now: Json) -> None:
    old, new = (changed(pod_of(gpu(), annotations=each), "status", "phase", to="Running") for each in (before, now))
    reported = partial(judge, names.VALIDATE_RECORDS_PATH, old=old, subresource="status")
    assert codes(reported(new)) == ["HC020"]
    assert reported(new, user=AGENT, policy=TRUSTING).allowed
    assert reported(changed(old, "status", "phase", to="Failed")).allowed


@pytest.mark.parametrize("field", ["annotations", "labels"])
@pytest.mark.parametrize("container_now", [gpu(), container()])
@pytest.mark.parametrize(
    ("before", "now"),
    [(None, {RECORD: "n1"}), ({RECORD: "n1"}, {RECORD: "n2"}), ({RECORD: "n1"}, {}), ({}, {RECORD: "n1"})],
    ids=["set", "changed", "removed", "added"],
)
def test_trusted_users_may_change_records_and_others_may_not(
    field: str, container_now: Json, before: Json | None, now: Json
) -> None:
    obj = changed(pod_of(container_now), "metadata", field, to=now)
    old = None if before is None else changed(pod_of(container_now), "metadata", field, to=before)
    verdict = validate(obj, old=old)
    assert codes(verdict) == codes(mutate(obj, old=old)) == ["HC020"]
    assert verdict.problems[0].where == f'metadata.{field}["{RECORD}"]'
    assert validate(obj, old=old, user=AGENT, policy=TRUSTING).allowed
    assert codes(validate(obj, old=old, user="bob", policy=TRUSTING)) == ["HC020"]


def test_unchanged_records_of_a_bound_pod_are_admitted() -> None:
    old = pod_of(gpu(), annotations={RECORD: "n1"}, labels={"halfcard.dev/model": "T4"}, nodeName="n1")
    assert validate(changed(old, "metadata", "finalizers", to=[]), old=old).allowed


# --- environment --------------------------------------------------------------------------------------------------


def with_env(holder: Json, name: str, value: str | None = "x", **fields: Any) -> Json:
    return pod_of({**holder, "env": [{"name": "FIRST"}, {"name": name, "value": value, **fields}]})


@pytest.mark.parametrize("holder", [container(), gpu(), WHOLE])
@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("NVIDIA_VISIBLE_DEVICES", "all", True),
        ("NVIDIA_VISIBLE_DEVICES", "0", True),
        ("NVIDIA_VISIBLE_DEVICES", "void,0", True),
        ("NVIDIA_VISIBLE_DEVICES", "$(CARD)", True),
        ("NVIDIA_VISIBLE_DEVICES", "VOID", True),
        ("NVIDIA_VISIBLE_DEVICES", "void", False),
        ("NVIDIA_VISIBLE_DEVICES", "none", False),
        ("NVIDIA_VISIBLE_DEVICES", "", False),
        ("NVIDIA_VISIBLE_DEVICES", None, False),
        ("NVIDIA_MIG_CONFIG_DEVICES", "all", True),
        ("NVIDIA_MIG_MONITOR_DEVICES", "all", True),
        ("NVIDIA_IMEX_CHANNELS", "0", True),
        ("NVIDIA_DRIVER_CAPABILITIES", "all", False),
        ("nvidia_visible_devices", "all", False),
        ("CUDA_VISIBLE_DEVICES", "0", False),
    ],
)
def test_no_container_may_choose_which_cards_it_sees(
    holder: Json,
    name: str,
    value: str | None,
    refused: bool,  # noqa: FBT001
) -> None:
    assert both_refuse(with_env(holder, name, value)) == (["HC021"] if refused else [])


@pytest.mark.parametrize("source", ["fieldRef", "configMapKeyRef", "secretKeyRef"])
def test_a_value_from_elsewhere_is_refused(source: str) -> None:
    obj = with_env(container(), names.VISIBLE_DEVICES, None, valueFrom={source: {"name": "a", "key": "b"}})
    assert both_refuse(obj) == ["HC021"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("LD_PRELOAD", ["HC022"]),
        ("LD_AUDIT", ["HC022"]),
        ("CUDA_DISABLE_CONTROL", ["HC022"]),
        ("CUDA_DEVICE_MEMORY_LIMIT_0", ["HC022"]),
        ("ALIYUN_COM_GPU_MEM_DEV", ["HC022"]),
        ("HALFCARD_ANYTHING", ["HC022"]),
        ("LD_PRELOADED", []),
        ("PATH", []),
    ],
)
def test_a_container_with_a_share_cannot_disable_its_isolation_library(name: str, wanted: list[str]) -> None:
    assert both_refuse(with_env(gpu(), name)) == wanted
    assert both_refuse(with_env(gpu(), name, None, valueFrom={"fieldRef": {}})) == wanted
    assert both_refuse(with_env(container(), name)) == []
    assert both_refuse(with_env(WHOLE, name)) == []


def test_a_library_path_gets_a_warning() -> None:
    verdict = validate(with_env(gpu(), "LD_LIBRARY_PATH"))
    assert verdict.allowed
    assert warned_codes(verdict) == ["HC045"]
    assert validate(with_env(WHOLE, "LD_LIBRARY_PATH")).warnings == ()


@pytest.mark.parametrize("field", ["initContainers", "ephemeralContainers"])
def test_init_and_ephemeral_containers_are_judged(field: str) -> None:
    sneaky = container(env=[{"name": names.VISIBLE_DEVICES, "value": "all"}])
    (problem,) = validate(changed(pod_of(container()), "spec", field, to=[sneaky])).problems
    assert (problem.code, problem.where) == ("HC021", f"spec.{field}[0].env[0]")


def test_the_field_path_names_the_variable() -> None:
    (problem,) = validate(with_env(container(), names.VISIBLE_DEVICES, "all")).problems
    assert (problem.where, problem.got) == ("spec.containers[0].env[1]", "NVIDIA_VISIBLE_DEVICES=all")


KNOWN = ClusterView(
    configmap_keys={
        ("team-a", "wide"): frozenset({"A", "NVIDIA_VISIBLE_DEVICES"}),
        ("team-a", "loose"): frozenset({"LD_PRELOAD"}),
        ("team-a", "plain"): frozenset({"A", "B"}),
        ("team-a", "half"): frozenset({"DEVICES"}),
        ("team-b", "plain"): frozenset({"NVIDIA_VISIBLE_DEVICES"}),
    }
)


def env_from(name: str | None = None, prefix: str = "", *, secret: bool = False) -> Json:
    kind = "secretRef" if secret else "configMapRef"
    return {"prefix": prefix, **({kind: {"name": name}} if name else {})}


@pytest.mark.parametrize(
    ("holder", "source", "refused"),
    [
        (container(), env_from("wide"), True),
        (container(), env_from("wide", "X_"), False),
        (container(), env_from("half", "NVIDIA_VISIBLE_"), True),
        (container(), env_from("half"), False),
        (container(), env_from("plain"), False),
        (container(), env_from("plain", "NVIDIA_"), False),
        (container(), env_from("loose"), False),
        (gpu(), env_from("loose"), True),
        (WHOLE, env_from("loose"), False),
        (container(), env_from("unknown"), False),
        (container(), env_from("unknown", "NVIDIA_VISIBLE_"), True),
        (container(), env_from("unknown", "NVIDIA_VISIBLE_DEVICES"), True),
        (container(), env_from("unknown", "APP_"), False),
        (container(), env_from("s", "NVIDIA_", secret=True), True),
        (container(), env_from("wide", "", secret=True), False),
        (container(), env_from("s", "LD_", secret=True), False),
        (gpu(), env_from("s", "LD_", secret=True), True),
        (gpu(), env_from("s", "HALFCARD_", secret=True), True),
        (gpu(), env_from("s", "HALFCARD_X", secret=True), True),
        (gpu(), env_from("s", "APP_", secret=True), False),
    ],
)
def test_variables_from_other_objects_are_judged_as_far_as_they_are_known(
    holder: Json,
    source: Json,
    refused: bool,  # noqa: FBT001
) -> None:
    obj = pod_of({**holder, "envFrom": [source]})
    assert both_refuse(obj, cluster=KNOWN) == (["HC023"] if refused else [])


# --- paths --------------------------------------------------------------------------------------------------------


def mounting(*paths: str, **spec: Any) -> Json:
    return pod_of(container(), volumes=[{"name": "v", "hostPath": {"path": path}} for path in paths], **spec)


def test_paths_that_lead_to_cards_are_refused_whatever_part_of_them_is_mounted_and_how() -> None:
    obj = mounting("/data", "/run/nri/nri.sock")
    assert both_refuse(obj) == ["HC024"]
    assert validate(obj).problems[0].where == "spec.volumes[1].hostPath.path"
    mounts = [{"name": "v", "mountPath": "/x", "readOnly": True, "subPath": "etc/localtime"}]
    whole = pod_of(container(volumeMounts=mounts), volumes=[{"name": "v", "hostPath": {"path": "/"}}])
    assert both_refuse(whole) == ["HC024"]
    assert validate(mounting("/data", "/etc/localtime")).allowed


SYSTEM = AdmissionPolicy(system_workloads=frozenset({"longhorn-system", "monitoring/node-exporter"}))


@pytest.mark.parametrize(
    ("namespace", "account", "refused"),
    [
        ("longhorn-system", None, False),
        ("longhorn-system", "any", False),
        ("monitoring", "node-exporter", False),
        ("monitoring", None, True),
        ("monitoring", "default", True),
        ("team-a", "node-exporter", True),
        ("team-a", "monitoring/node-exporter", True),
    ],
)
def test_agents_of_the_system_are_known_by_who_may_create_them(
    namespace: str,
    account: str | None,
    refused: bool,  # noqa: FBT001
) -> None:
    obj = mounting("/proc", "/sys", "/", **({"serviceAccountName": account} if account else {}))
    assert both_refuse(obj, policy=SYSTEM, namespace=namespace) == (["HC024"] if refused else [])
    daemons = {"kind": "DaemonSet", "metadata": {"name": "d"}, "spec": {"template": obj}}
    judged = judge(names.VALIDATE_WORKLOADS_PATH, daemons, kind="DaemonSet", policy=SYSTEM, namespace=namespace)
    assert judged.allowed is not refused


def test_an_agent_of_the_system_is_judged_by_all_other_rules() -> None:
    obj = pod_of(container(env=[{"name": names.VISIBLE_DEVICES, "value": "all"}]))
    assert both_refuse(obj, policy=SYSTEM, namespace="longhorn-system") == ["HC021"]


def test_a_rule_that_only_warns_reports_what_it_would_refuse() -> None:
    verdict = validate(mounting("/"), policy=AdmissionPolicy(severities={"HC024": Severity.WARN}))
    assert (verdict.allowed, verdict.warned) == (True, ["HC024"])


def test_folders_of_the_installation_are_open_to_every_pod() -> None:
    policy = AdmissionPolicy(host_paths=("/var/lib/models",))
    assert validate(mounting("/var/lib/models/llama"), policy=policy).allowed
    assert both_refuse(mounting("/var/lib"), policy=policy) == ["HC024"]


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/var/run/nvidia-container-devices/all", True),
        ("/run/nvidia-container-devices/0", True),
        ("/var/run//x/../nvidia-container-devices", True),
        ("/var/run/nvidia-container-devices-2", True),
        ("/var/run/nvidia-container-devicesall", True),
        ("/data/nvidia-container-devices", False),
        ("/data", False),
    ],
)
def test_devices_are_not_listed_by_mounts(path: str, refused: bool) -> None:  # noqa: FBT001
    obj = pod_of(container(volumeMounts=[{"name": "v", "mountPath": path}]))
    assert both_refuse(obj) == (["HC027"] if refused else [])


def test_devices_are_not_listed_by_annotation() -> None:
    obj = pod_of(container(), annotations={"cdi.k8s.io/mine": "nvidia.com/gpu=all"})
    (problem,) = validate(obj).problems
    assert (problem.code, problem.where) == ("HC027", 'metadata.annotations["cdi.k8s.io/mine"]')


# --- privileges ---------------------------------------------------------------------------------------------------

PRIVILEGED = {"securityContext": {"privileged": True}}


@pytest.mark.parametrize(
    ("obj", "refused", "warned"),
    [
        (pod_of(gpu(**PRIVILEGED)), ["HC025"], []),
        (pod_of(gpu(), container(**PRIVILEGED)), ["HC025"], []),
        (pod_of(gpu(), init=[container(**PRIVILEGED)]), ["HC025"], []),
        (pod_of(gpu(), hostPID=True), ["HC025"], []),
        (pod_of(WHOLE, gpu(), hostPID=True), ["HC025"], []),
        (pod_of(gpu("100", None, **PRIVILEGED)), [], ["HC042"]),
        (pod_of(WHOLE, hostPID=True), [], ["HC042"]),
        (pod_of(container(**PRIVILEGED), hostPID=True), [], []),
        (pod_of(gpu(securityContext={"privileged": False}), hostPID=False), [], []),
        (pod_of(container({names.NVIDIA_GPU_SHARED: 1}, {names.NVIDIA_GPU_SHARED: 1}), hostPID=True), ["HC025"], []),
    ],
)
def test_privileges_are_refused_with_a_share_and_get_a_warning_with_whole_cards(
    obj: Json, refused: list[str], warned: list[str]
) -> None:
    assert both_refuse(obj) == refused
    assert warned_codes(validate(obj)) == warned


def test_a_container_added_to_a_pod_with_a_share_may_not_be_privileged() -> None:
    old = pod_of(gpu())
    new = pod_of(gpu(), ephemeralContainers=[container(**PRIVILEGED)])
    verdict = validate(new, old=old, subresource="ephemeralcontainers")
    assert [problem.where for problem in verdict.problems] == ["spec.ephemeralContainers[0].securityContext.privileged"]
