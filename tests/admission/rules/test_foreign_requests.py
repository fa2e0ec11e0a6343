"""Requests that other systems read, and no dialect: they are admitted, with a warning that says whose they are."""

from __future__ import annotations

from typing import Final

import pytest

from halfcard import names
from halfcard.dialects import Dialects
from halfcard.pod.foreign_requests import ANNOTATIONS, RESOURCES, ForeignRequest, fix_of_resource
from halfcard.problems import FOREIGN, as_warning
from tests.builders import Json, container, pod_of

from ..judging import mutate, validate, warned_codes


def asking(resource: str) -> Json:
    return pod_of(container({resource: "1"}, {resource: "1"}))


FOREIGN_RESOURCES: Final = (
    "nvidia.com/mig-1g.10gb",
    "nvidia.com/mig-3g.20gb.shared",
    "volcano.sh/vgpu-number",
    "volcano.sh/vgpu-memory-percentage",
    "koordinator.sh/gpu.shared",
)


@pytest.mark.parametrize("resource", FOREIGN_RESOURCES)
def test_a_resource_that_another_system_gives_out_is_mentioned_once(resource: str) -> None:
    verdict = mutate(asking(resource))
    assert (verdict.allowed, warned_codes(verdict)) == (True, ["HC047"])
    assert warned_codes(validate(asking(resource))) == ["HC047"]


MISSPELLED: Final = {
    "nvidia.com/gpus": names.NVIDIA_GPU,
    "nvidia.com/GPU": names.NVIDIA_GPU,
    "nvidia.com/gpu-shared": names.NVIDIA_GPU_SHARED,
    "nvidia.com/gpucore": names.HAMI_GPUCORES,
    "nvidia.com/gpu-mem": names.HAMI_GPUMEM,
    "tencent.com/vcudacore": names.VCUDA_CORE,
    "tencent.com/vcuda_memory": names.VCUDA_MEMORY,
    "aliyun.com/gpumem": names.ALIYUN_GPU_MEM,
    "aliyun.com/gpu-memory": names.ALIYUN_GPU_MEM,
    "volcano.sh/gpu-mem": names.VOLCANO_GPU_MEMORY,
    "volcano.sh/gpu_number": names.VOLCANO_GPU_NUMBER,
    "tuya.com/sgpus": names.TUYA_SGPU,
}


@pytest.mark.parametrize(("written", "meant"), MISSPELLED.items())
def test_a_misspelled_resource_that_stands_alone_is_not_stored_without_a_word(written: str, meant: str) -> None:
    verdict = mutate(asking(written))
    assert (verdict.allowed, warned_codes(verdict)) == (True, ["HC047"])
    assert verdict.warnings[0].endswith(f"did you mean {meant}?")


OTHERS: Final = ("nvidia.com/GP102GL_Tesla_P40", "nvidia.com/rdma", "amd.com/gpu", "tencent.com/ip")


@pytest.mark.parametrize("resource", OTHERS)
def test_other_resources_of_the_same_vendors_get_no_warning(resource: str) -> None:
    assert mutate(asking(resource)).warnings == ()


@pytest.mark.parametrize("key", ["gpu-fraction", "gpu-memory"])
def test_a_share_that_kai_reads_from_an_annotation_is_mentioned(key: str) -> None:
    pod = pod_of(container())
    pod["metadata"]["annotations"] = {key: "0.5"}
    verdict = mutate(pod)
    assert (verdict.allowed, warned_codes(verdict)) == (True, ["HC047"])
    assert f"{key} is for KAI Scheduler" in verdict.warnings[0]


def test_no_dialect_reads_what_is_called_foreign() -> None:
    assert [resource for resource in Dialects().resources if fix_of_resource(resource)] == []
    assert fix_of_resource(names.VOLCANO_GPU_MEMORY) == fix_of_resource("cpu") == ""


@pytest.mark.parametrize("row", [*RESOURCES, *ANNOTATIONS], ids=lambda row: row.name)
def test_no_warning_is_cut(row: ForeignRequest) -> None:
    warning = as_warning(FOREIGN.broken("spec.containers[0].resources", "50", row.fix))
    assert warning == f"[HC047] {FOREIGN.text}; {row.fix}"


SHARE: Final = {names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}
ELSEWHERE: Final[dict[str, Json]] = {
    "of the pod": pod_of(container(), resources={"limits": SHARE}),
    "of the pod, as requests": pod_of(container(), resources={"requests": SHARE}),
    "of a container for debugging": pod_of(container(), ephemeralContainers=[container(SHARE)]),
}


@pytest.mark.parametrize("pod", ELSEWHERE.values(), ids=ELSEWHERE)
def test_resources_where_kubernetes_allows_no_gpu_are_not_passed_over(pod: Json) -> None:
    verdict = mutate(pod)
    assert (verdict.allowed, warned_codes(verdict)) == (True, ["HC047"])
    assert all("ask for it in a container" in each for each in verdict.warnings)


def test_cpu_and_memory_of_the_pod_are_not_mentioned() -> None:
    assert mutate(pod_of(container(), resources={"limits": {"cpu": "2", "memory": "1Gi"}})).warnings == ()
