"""Which objects reach the webhook: no pod without GPU, but each pod that could get a GPU in another way."""

from __future__ import annotations

from typing import Any, Final

import pytest

from devcluster.objects import Object
from devcluster.services.installation import TRUSTED_USER, Installation
from halfcard import names
from tests.builders import PodBuilder, pod

from .manifests import bad, complete, plain, resource_quota, share, workload

ORDINARY: Final[dict[str, PodBuilder]] = {
    "nothing at all": pod().container(),
    "cpu and memory": pod().container(limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "100m"}),
    "another device": pod().container(limits={"example.com/fpga": "1"}),
    "init and sidecar": pod().container().container("initContainers", restartPolicy="Always"),
    "variables": pod().container(env=[{"name": "LD_PRELOAD", "value": "x"}, {"name": "CUDA_CACHE_PATH", "value": "y"}]),
    "envFrom": pod().container(
        envFrom=[
            {"configMapRef": {"name": "settings", "optional": True}},
            {"prefix": "APP_", "secretRef": {"name": "secrets", "optional": True}},
        ]
    ),
    "volumes": pod()
    .container(volumeMounts=[{"name": "scratch", "mountPath": "/run/scratch"}])
    .specified(volumes=[{"name": "scratch", "emptyDir": {}}, {"name": "files", "configMap": {"name": "settings"}}]),
    "annotations and labels": pod()
    .container()
    .annotated({"prometheus.io/scrape": "true"})
    .labelled({"app.kubernetes.io/name": "web"}),
    "privileged": pod().container(securityContext={"privileged": True}).specified(hostPID=True),
}


def mount(path: str) -> PodBuilder:
    mounts = [{"name": "list", "mountPath": path}]
    return pod().container(volumeMounts=mounts).specified(volumes=[{"name": "list", "emptyDir": {}}])


def variable(name: str, value: str) -> dict[str, Any]:
    return {"env": [{"name": name, "value": value}]}


ESCAPES: Final[dict[str, tuple[PodBuilder, str]]] = {
    "variable": (pod().container(**variable(names.VISIBLE_DEVICES, "all")), "HC021"),
    "variable of an init container": (
        pod().container().container("initContainers", **variable(names.VISIBLE_DEVICES, "all")),
        "HC021",
    ),
    "MIG variable": (pod().container(**variable("NVIDIA_MIG_CONFIG_DEVICES", "all")), "HC021"),
    "variable by the prefix of envFrom": (
        pod().container(envFrom=[{"prefix": "NVIDIA_VISIBLE_", "secretRef": {"name": "secrets"}}]),
        "HC023",
    ),
    "device file": (
        pod().container().specified(volumes=[{"name": "dev", "hostPath": {"path": "/dev/nvidia0"}}]),
        "HC024",
    ),
    "folder above the device files": (
        pod().container().specified(volumes=[{"name": "dev", "hostPath": {"path": "/dev"}}]),
        "HC024",
    ),
    "variable of Swarm": (pod().container(**variable("DOCKER_RESOURCE_GPU", "all")), "HC021"),
    "socket of NRI": (
        pod().container().specified(volumes=[{"name": "nri", "hostPath": {"path": "/var/run/nri/nri.sock"}}]),
        "HC024",
    ),
    "processes of the node": (
        pod().container().specified(volumes=[{"name": "proc", "hostPath": {"path": "/proc"}}]),
        "HC024",
    ),
    "list of devices by the beginning of a mount": (mount("/var/run/nvidia-container-devicesall"), "HC027"),
    "annotation of NVIDIA's NRI plugin": (pod().container().annotated({"nvidia.cdi.k8s.io/pod": "x"}), "HC027"),
    "annotation of CRI-O": (pod().container().annotated({"io.kubernetes.cri-o.Devices": "/dev/nvidia0"}), "HC027"),
    "device class": (
        pod().container(limits={names.DEVICE_CLASS_PREFIX + names.GPU_DEVICE_CLASSES[0]: "1"}),
        "HC017",
    ),
    "list of devices by mounts": (mount("/var/run/nvidia-container-devices/all"), "HC027"),
    "CDI annotation": (pod().container().annotated({"cdi.k8s.io/x": "nvidia.com/gpu=all"}), "HC027"),
    "our record": (pod().container().annotated({f"{names.OWN_PREFIX}cards": "0"}), "HC020"),
    "gpu-manager's record": (pod().container().annotated({"tencent.com/predicate-gpu-idx-0": "0"}), "HC020"),
    "gpushare's record": (pod().container().annotated({"ALIYUN_COM_GPU_MEM_IDX": "0"}), "HC020"),
    "record as a label": (pod().container().labelled({f"{names.OWN_PREFIX}cards": "0"}), "HC020"),
}


@pytest.mark.parametrize("built", ORDINARY.values(), ids=ORDINARY)
def test_a_pod_without_gpu_does_not_reach_the_webhook(webhook: Installation, space: str, built: PodBuilder) -> None:
    before = webhook.calls()
    item = complete(built)
    webhook.create(space, item).must()
    label = webhook.kubectl(space, "label", "pod", "p", "touched=yes")
    assert label.code == 0, label.stderr
    look = {"name": "look", "image": "example.invalid/shell:1"}
    debug = webhook.cluster.client.merge(
        webhook.cluster.admin,
        f"/api/v1/namespaces/{space}/pods/p/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [look]}},
    )
    assert debug["spec"]["ephemeralContainers"]
    webhook.cluster.request("DELETE", f"/api/v1/namespaces/{space}/pods/p").must()
    assert webhook.calls() == before


def test_the_match_conditions_are_cheap_enough_for_a_huge_pod(webhook: Installation, space: str) -> None:
    """The API server refuses a pod whose conditions cost it too much to evaluate."""
    variables = [{"name": f"SETTING_{number}", "value": "x"} for number in range(500)]
    mounts = [{"name": "scratch", "mountPath": f"/data/{number}"} for number in range(100)]
    built = pod().specified(volumes=[{"name": "scratch", "emptyDir": {}}])
    for _ in range(10):
        built = built.container(
            env=variables, volumeMounts=mounts, envFrom=[{"prefix": "X_", "configMapRef": {"name": "x"}}]
        )
    annotations = {f"example.com/{number}": "x" for number in range(500)}
    before = webhook.calls()
    webhook.create(space, complete(built.annotated(annotations).labelled(annotations))).must()
    assert webhook.calls() == before


@pytest.mark.parametrize(("built", "code"), ESCAPES.values(), ids=ESCAPES)
def test_every_way_to_get_a_gpu_without_resources_is_refused(
    webhook: Installation, space: str, built: PodBuilder, code: str
) -> None:
    refused = webhook.create(space, complete(built))
    assert refused.status == 403
    assert f"[{code}]" in refused.body["message"]


def test_a_request_that_another_system_reads_is_mentioned(webhook: Installation, space: str) -> None:
    vgpu = pod("vgpu").container(limits={f"{names.VOLCANO_VGPU}number": "1"})
    fraction = pod("fraction").container().annotated({names.KAI_FRACTION: "0.5"})
    for built in (vgpu, fraction):
        created = webhook.kubectl(space, "create", "--filename", "-", item=complete(built))
        assert (created.code, "[HC047]" in created.stderr) == (0, True), created


def test_an_image_that_could_bring_cards_sees_none(webhook: Installation, space: str) -> None:
    stored = webhook.create(space, complete(pod().container(**variable("CUDA_VERSION", "8.0")))).must()
    env = stored["spec"]["containers"][0]["env"]
    assert {"name": names.VISIBLE_DEVICES, "value": names.SEES_NOTHING} in env


def test_an_annotation_that_gives_devices_is_refused_on_a_running_pod(webhook: Installation, space: str) -> None:
    webhook.create(space, complete(pod().container())).must()
    given = webhook.kubectl(space, "annotate", "pod", "p", "nvidia.cdi.k8s.io/container.main=nvidia.com/gpu=all")
    assert given.code == 1
    assert "[HC027]" in given.stderr


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_claim_of_a_gpu_class_is_refused_and_another_one_is_not(webhook: Installation, space: str, kind: str) -> None:
    gpus, others = (resource_claim(kind, name) for name in (names.GPU_DEVICE_CLASSES[0], "nic.example.com"))
    refused = webhook.create(space, gpus)
    assert refused.status == 403
    assert "[HC017]" in refused.body["message"]
    webhook.create(space, others).must()


def resource_claim(kind: str, device_class: str) -> Object:
    requests = [{"name": "one", "exactly": {"deviceClassName": device_class}}]
    spec: Object = {"devices": {"requests": requests}}
    claimed = spec if kind == "ResourceClaim" else {"spec": spec}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": "c"}, "spec": claimed}


def test_removing_a_record_is_refused_although_the_new_pod_is_plain(webhook: Installation, space: str) -> None:
    trusted = webhook.cluster.tenant(space, TRUSTED_USER)
    record = "tencent.com/gpu-assigned"
    webhook.create(space, complete(pod().container().annotated({record: "true"})), user=trusted).must()
    removal = webhook.kubectl(space, "annotate", "pod", "p", f"{record}-")
    assert removal.code == 1
    assert "[HC020]" in removal.stderr


@pytest.mark.parametrize("namespace", sorted({names.KUBE_SYSTEM, names.NAMESPACE}))
def test_objects_in_system_namespaces_do_not_reach_the_webhook(webhook: Installation, namespace: str) -> None:
    """Pods and workloads are not validated there."""
    before = webhook.calls()
    webhook.create(namespace, complete(pod().container(**variable(names.VISIBLE_DEVICES, "all"))), dry_run=True).must()
    webhook.create(namespace, workload("Deployment", "wrong", bad("wrong")), dry_run=True).must()
    assert webhook.calls() == before


WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob")
OTHERS: Final = ("PodTemplate", "ReplicationController")


def other_workload(kind: str, of: Object) -> Object:
    """Returns a PodTemplate or ReplicationController: their template or selector differs from other workloads."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": of["spec"]}
    content = (
        {"template": template}
        if kind == "PodTemplate"
        else {"spec": {"selector": {"app": "web"}, "template": template}}
    )
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "web"}, **content}


@pytest.mark.parametrize("kind", [*WORKLOADS, *OTHERS])
def test_a_workload_reaches_the_webhook_only_if_its_template_asks_for_a_gpu(
    webhook: Installation, space: str, kind: str
) -> None:
    paths = names.MUTATE_WORKLOADS_PATH, names.VALIDATE_WORKLOADS_PATH
    build = other_workload if kind in OTHERS else lambda kind, of: workload(kind, "web", of)
    before = [webhook.calls(path) for path in paths]
    webhook.create(space, build(kind, plain("web")), dry_run=True).must()
    assert [webhook.calls(path) for path in paths] == before
    webhook.create(space, build(kind, share("web")), dry_run=True).must()
    assert [webhook.calls(path) for path in paths] == [count + 1 for count in before]


def test_a_quota_reaches_the_webhook_only_if_it_limits_gpus(webhook: Installation, space: str) -> None:
    before = webhook.calls(names.MUTATE_QUOTAS_PATH)
    webhook.create(space, resource_quota("cpu", {"limits.cpu": "4"}), dry_run=True).must()
    assert webhook.calls(names.MUTATE_QUOTAS_PATH) == before
    for key in (names.VCUDA_CORE, f"limits.{names.TUYA_SGPU}", f"requests.{names.NVIDIA_GPU}"):
        webhook.create(space, resource_quota("gpu", {key: "4"}), dry_run=True).must()
    assert webhook.calls(names.MUTATE_QUOTAS_PATH) == before + 3
