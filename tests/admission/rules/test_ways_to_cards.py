"""Every row of the table of ways to a card has a case here; what holds for a row holds for every spelling of it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from halfcard import names
from halfcard.ways_to_cards import (
    ANNOTATION_HINTS,
    ANNOTATIONS,
    MOUNTS,
    VARIABLES,
    Annotation,
    Effect,
    Mount,
    Variable,
    mount_row,
    names_devices,
    variable_row,
)
from tests.builders import Json, container, gpu, pod_of

from ..judging import VOID, codes, mutate, mutated, validate, warned_codes

WHOLE: Final = gpu("100", None)

# --- variables ----------------------------------------------------------------------------------------------------

SPELLINGS: Final[dict[str, tuple[str, ...]]] = {
    "NVIDIA_VISIBLE_DEVICES": ("NVIDIA_VISIBLE_DEVICES",),
    "DOCKER_RESOURCE_GPU": ("DOCKER_RESOURCE_GPU",),
    "NVIDIA_MIG_CONFIG_DEVICES": ("NVIDIA_MIG_CONFIG_DEVICES",),
    "NVIDIA_MIG_MONITOR_DEVICES": ("NVIDIA_MIG_MONITOR_DEVICES",),
    "NVIDIA_IMEX_CHANNELS": ("NVIDIA_IMEX_CHANNELS",),
    "NVIDIA_NVSWITCH": ("NVIDIA_NVSWITCH",),
    "CUDA_VERSION": ("CUDA_VERSION",),
    "NVIDIA_REQUIRE_": ("NVIDIA_REQUIRE_CUDA", "NVIDIA_REQUIRE_JETPACK"),
    "NVIDIA_DISABLE_REQUIRE": ("NVIDIA_DISABLE_REQUIRE",),
    "NVIDIA_DRIVER_CAPABILITIES": ("NVIDIA_DRIVER_CAPABILITIES",),
    "NVIDIA_GDS": ("NVIDIA_GDS",),
    "NVIDIA_GDRCOPY": ("NVIDIA_GDRCOPY",),
    "NVIDIA_MOFED": ("NVIDIA_MOFED",),
    "LD_PRELOAD": ("LD_PRELOAD",),
    "LD_AUDIT": ("LD_AUDIT",),
    "LD_LIBRARY_PATH": ("LD_LIBRARY_PATH",),
    "CUDA_DEVICE_SM_LIMIT": ("CUDA_DEVICE_SM_LIMIT", "CUDA_DEVICE_SM_LIMIT_0", "CUDA_DEVICE_SM_LIMIT_15"),
    "CUDA_DEVICE_MEMORY_": (
        "CUDA_DEVICE_MEMORY_LIMIT",
        "CUDA_DEVICE_MEMORY_LIMIT_7",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE",
    ),
    "CUDA_DISABLE_CONTROL": ("CUDA_DISABLE_CONTROL",),
    "CUDA_OVERSUBSCRIBE": ("CUDA_OVERSUBSCRIBE",),
    "CUDA_TASK_PRIORITY": ("CUDA_TASK_PRIORITY",),
    "CUDA_REDIRECT": ("CUDA_REDIRECT",),
    "GPU_CORE_UTILIZATION_POLICY": ("GPU_CORE_UTILIZATION_POLICY",),
    "ACTIVE_OOM_KILLER": ("ACTIVE_OOM_KILLER",),
    "LIBCUDA_LOG_LEVEL": ("LIBCUDA_LOG_LEVEL",),
    "CGPU_DISABLE": ("CGPU_DISABLE",),
    "ALIYUN_COM_GPU_MEM_": ("ALIYUN_COM_GPU_MEM_DEV", "ALIYUN_COM_GPU_MEM_CONTAINER"),
    "VOLCANO_GPU_": ("VOLCANO_GPU_ALLOCATED", "VOLCANO_GPU_MEMORY_TOTAL"),
    "HALFCARD_": ("HALFCARD_LIMITS", "HALFCARD_ANYTHING"),
    "compat32": ("compat32",),
    "LOGGER_LEVEL": ("LOGGER_LEVEL",),
    "CUDA_VISIBLE_DEVICES": ("CUDA_VISIBLE_DEVICES",),
}
ROWS: Final = {row.name: row for row in VARIABLES}


def spelled(*effects: Effect) -> list[Any]:
    rows = [row for row in VARIABLES if row.effect in effects]
    return [pytest.param(row, name, id=name) for row in rows for name in SPELLINGS.get(row.name, ())]


def setting(holder: Json, name: str, value: str = "1") -> Json:
    return pod_of({**holder, "env": [{"name": name, "value": value}]})


def test_every_row_has_a_case_and_a_reason() -> None:
    assert list(SPELLINGS) == list(ROWS)
    assert set(FILES) == {row.path for row in MOUNTS}
    assert set(KEYS) == {row.text for row in ANNOTATIONS}
    assert all(row.reader and row.why for row in (*VARIABLES, *MOUNTS, *ANNOTATIONS))


@pytest.mark.parametrize(("row", "name"), spelled(*Effect))
def test_a_name_is_found_by_its_own_row(row: Variable, name: str) -> None:
    assert variable_row(name) is row
    assert variable_row(name.lower() + "x") is None


@pytest.mark.parametrize(("row", "name"), spelled(Effect.CHOOSES))
def test_a_variable_that_chooses_cards_is_refused_everywhere_unless_it_says_none(row: Variable, name: str) -> None:
    for holder in (container(), gpu(), WHOLE):
        assert codes(validate(setting(holder, name))) == codes(mutate(setting(holder, name))) == ["HC021"]
        assert all(validate(setting(holder, name, value)).allowed for value in row.harmless)
    assert codes(validate(pod_of(container(envFrom=[{"prefix": name[:5], "secretRef": {"name": "s"}}])))) == ["HC023"]


@pytest.mark.parametrize(("row", "name"), spelled(Effect.BRINGS))
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_a_container_that_an_image_could_bring_cards_sees_none(row: Variable, name: str, field: str) -> None:
    old = {"name": "c", "image": "cuda", "env": [{"name": name, "value": "8.0"}]}
    obj = pod_of(container())
    obj["spec"][field] = [old]
    (problem,) = validate(obj).problems
    assert (problem.code, problem.where) == ("HC029", f'spec.{field}[0].env["{names.VISIBLE_DEVICES}"]')
    assert mutated(obj)["spec"][field][0]["env"] == [*old["env"], VOID]
    assert validate(mutated(obj)).allowed
    assert validate(setting(container(), name, *row.harmless)).allowed
    assert validate(setting(WHOLE, name)).allowed


@pytest.mark.parametrize(
    "source", [{"prefix": "CUDA_", "secretRef": {"name": "s"}}, {"prefix": "CUDA_V", "configMapRef": {"name": "m"}}]
)
def test_a_source_that_could_bring_cards_is_overridden(source: Json) -> None:
    obj = pod_of(container(envFrom=[source]))
    assert codes(validate(obj)) == ["HC029"]
    assert validate(mutated(obj)).allowed


@pytest.mark.parametrize("name", ["nvidia", "nvidia-cdi", "nvidia-legacy", "my-nvidia"])
def test_a_pod_of_nvidias_runtime_class_sees_no_card_without_a_claim(name: str) -> None:
    obj = pod_of(container(), init=[container()], runtimeClassName=name)
    assert codes(validate(obj)) == ["HC029"]
    stored = mutated(obj)
    assert [each["env"] for field in ("containers", "initContainers") for each in stored["spec"][field]] == [[VOID]] * 2
    assert validate(stored).allowed
    assert mutate(stored).changes == ()


def test_a_pod_of_another_runtime_class_stays_as_it_is() -> None:
    assert mutated(pod_of(container(), runtimeClassName="kata")) == pod_of(container(), runtimeClassName="kata")


def test_a_debug_container_in_a_pod_of_nvidias_runtime_class_sees_no_card() -> None:
    old = mutated(pod_of(container(), runtimeClassName="nvidia"))
    new = {**old, "spec": {**old["spec"], "ephemeralContainers": [container()]}}
    assert codes(validate(new, old=old, subresource="ephemeralcontainers")) == ["HC029"]
    stored = mutated(new, old=old, subresource="ephemeralcontainers")
    assert stored["spec"]["ephemeralContainers"][0]["env"] == [VOID]
    assert validate(stored, old=old, subresource="ephemeralcontainers").allowed


def test_a_stored_pod_that_sees_cards_can_still_be_changed() -> None:
    old = pod_of(container(), runtimeClassName="nvidia")
    assert validate({**old, "metadata": {"name": "train", "labels": {"a": "b"}}}, old=old).allowed


@pytest.mark.parametrize(("row", "name"), spelled(Effect.LOOSENS))
def test_a_variable_that_loosens_a_share_is_refused_with_a_share(row: Variable, name: str) -> None:
    assert codes(validate(setting(gpu(), name))) == codes(mutate(setting(gpu(), name))) == ["HC022"]
    for holder in (container(), WHOLE):
        assert validate(setting(holder, name)).allowed
    assert codes(validate(pod_of(gpu(envFrom=[{"prefix": name[:4], "secretRef": {"name": "s"}}])))) == ["HC023"]
    assert row.harmless == frozenset()


@pytest.mark.parametrize(("row", "name"), spelled(Effect.MAY_LOOSEN))
def test_a_variable_that_images_need_gets_a_warning(row: Variable, name: str) -> None:
    assert warned_codes(validate(setting(gpu(), name))) == ["HC045"]
    assert validate(setting(WHOLE, name)).warnings == validate(setting(container(), row.name)).warnings == ()


@pytest.mark.parametrize(("row", "name"), spelled(Effect.NOTHING))
def test_a_harmless_variable_is_admitted_everywhere(row: Variable, name: str) -> None:
    for holder in (container(), gpu(), WHOLE):
        assert validate(setting(holder, name)).warnings == ()
        assert validate(setting(holder, row.name)).allowed


# --- mounts -------------------------------------------------------------------------------------------------------

FILES: Final[dict[str, tuple[str, ...]]] = {
    "/run/nvidia-container-devices": (
        "/var/run/nvidia-container-devices/all",
        "/var/run/nvidia-container-devicesall",
        "/var/run/nvidia-container-devices-2",
        "/var/run//x/../nvidia-container-devices/cdi/nvidia.com/gpu/all",
        "var/run/nvidia-container-devices/imex/0",
        "/run/nvidia-container-devices/0",
    ),
    "/etc/ld.so.preload": ("/etc/ld.so.preload", "/etc//ld.so.preload"),
    "/usr/local/vgpu": ("/usr/local/vgpu", "/usr/local/vgpu/libvgpu.so", "/usr/local/x/../vgpu/containers"),
    "/tmp/vgpulock": ("/tmp/vgpulock", "/tmp/vgpulock/lock"),  # a path in containers
    "/overrideEnv": ("/overrideEnv",),
    "/etc/vcuda": ("/etc/vcuda", "/etc/vcuda/vcuda.config"),
    "/usr/local/nvidia": ("/usr/local/nvidia", "/usr/local/nvidia/lib64/libcuda.so.1"),
    "/etc/halfcard": ("/etc/halfcard", "/etc/halfcard/limits.json"),
    "/run/halfcard": ("/run/halfcard", "/var/run/halfcard/library/libcuda.so.1"),
}
MOUNT_CASES: Final = [(row, path) for row in MOUNTS for path in FILES[row.path]]


def mounting(holder: Json, path: str) -> Json:
    return pod_of({**holder, "volumeMounts": [{"name": "v", "mountPath": path}]})


@pytest.mark.parametrize(("row", "path"), MOUNT_CASES, ids=[path for _, path in MOUNT_CASES])
def test_a_mount_that_names_cards_or_covers_limits_is_refused(row: Mount, path: str) -> None:
    assert mount_row(path) is row
    chooses = row.effect is Effect.CHOOSES
    assert codes(validate(mounting(gpu(), path))) == (["HC027"] if chooses else ["HC022"])
    for holder in (container(), WHOLE):
        assert codes(validate(mounting(holder, path))) == (["HC027"] if chooses else [])


@pytest.mark.parametrize(
    "path", ["/data", "/data/nvidia-container-devices", "/etc/ld.so.preload.d", "/etc/vcuda2", "/usr/local", "/etc", ""]
)
def test_other_mounts_are_admitted(path: str) -> None:
    assert mount_row(path) is None
    assert validate(mounting(gpu(), path)).allowed


# --- annotations --------------------------------------------------------------------------------------------------

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "cdi.k8s.io": (
        "cdi.k8s.io/mine",
        "cdi.k8s.io/nvidia-device-plugin_1",
        "nvidia.cdi.k8s.io",
        "nvidia.cdi.k8s.io/pod",
        "nvidia.cdi.k8s.io/container.main",
        "any.cdi.k8s.io/x",
    ),
    **{
        domain: (domain, f"{domain}/pod", f"{domain}/container.main")
        for domain in (
            "cdi-devices.noderesource.dev",
            "cdi-devices.nri.io",
            "devices.noderesource.dev",
            "devices.nri.io",
            "mounts.noderesource.dev",
            "mounts.nri.io",
        )
    },
    "devices.crio.io": ("devices.crio.io", "devices.crio.io/main", "devices.crio.io.main"),
    "io.kubernetes.cri-o.Devices": ("io.kubernetes.cri-o.Devices", "io.kubernetes.cri-o.Devices/main"),
    "org.systemd.property.Device": ("org.systemd.property.DeviceAllow", "org.systemd.property.DevicePolicy"),
}
KEY_CASES: Final = [(row, key) for row in ANNOTATIONS for key in KEYS[row.text]]


@pytest.mark.parametrize(("row", "key"), KEY_CASES, ids=[key for _, key in KEY_CASES])
def test_an_annotation_that_gives_devices_is_refused_at_create_and_at_update(row: Annotation, key: str) -> None:
    assert row.is_meant(key)
    assert any(hint in key for hint in ANNOTATION_HINTS)
    given, plain = pod_of(container(), annotations={key: "nvidia.com/gpu=all"}), pod_of(container())
    assert codes(mutate(given)) == codes(validate(given)) == ["HC027"]
    assert codes(mutate(given, old=plain)) == codes(validate(given, old=plain)) == ["HC027"]
    changed = pod_of(container(), annotations={key: "nvidia.com/gpu=0"})
    assert codes(validate(changed, old=given)) == ["HC027"]
    assert validate(plain, old=given).allowed


@pytest.mark.parametrize("key", ["example.com/devices", "k8s.io/cdi", "mounts.example.com/x", "netdevices.nri.io/pod"])
def test_other_annotations_are_admitted(key: str) -> None:
    assert not names_devices(key)
    assert validate(pod_of(container(), annotations={key: "x"})).allowed
