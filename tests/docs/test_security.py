"""What the security page calls refused is refused, and what it calls unprotected is admitted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from admission.policy import AdmissionPolicy
from cli.judge import Judge
from halfcard import names
from halfcard.cluster_view import NOTHING_KNOWN, ClusterView
from tests.builders import pod

from .pages import ROOT

PAGE: Final = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
KNOWN: Final = ClusterView(configmap_keys={("default", "app"): frozenset({names.VISIBLE_DEVICES})})

plain = pod().container()
share = pod().asks(core="30", memory="20")


def variable(name: str, value: str) -> dict[str, Any]:
    return pod().asks(core="30", memory="20").container(env=[{"name": name, "value": value}]).manifest


def share_with(**fields: Any) -> dict[str, Any]:
    return pod().container(limits={names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}, **fields).manifest


def shared_variable(name: str) -> dict[str, Any]:
    return share_with(env=[{"name": name, "value": "x"}])


def mounting(path: str) -> dict[str, Any]:
    return plain.specified(volumes=[{"name": "v", "hostPath": {"path": path}}]).manifest


def importing(**source: Any) -> dict[str, Any]:
    return pod().container(envFrom=[source]).manifest


def of_map(name: str) -> dict[str, str]:
    return {"name": name}


ATTEMPTS: Final[Mapping[str, tuple[dict[str, Any], str]]] = {
    "sets NVIDIA_VISIBLE_DEVICES": (variable(names.VISIBLE_DEVICES, "all"), "HC021"),
    "spells it by a prefix": (importing(prefix="NVIDIA_", secretRef=of_map("s")), "HC023"),
    "imports a ConfigMap that is known": (importing(configMapRef=of_map("app")), "HC023"),
    "preloads a library": (shared_variable("LD_PRELOAD"), "HC022"),
    "chooses cards for Swarm": (variable("DOCKER_RESOURCE_GPU", "all"), "HC021"),
    "lifts the limit of one card": (shared_variable("CUDA_DEVICE_SM_LIMIT_0"), "HC022"),
    "covers the list of libraries": (
        share_with(volumeMounts=[{"name": "v", "mountPath": "/etc/ld.so.preload"}]),
        "HC022",
    ),
    "names a card by a mount": (
        pod().container(volumeMounts=[{"name": "v", "mountPath": "/var/run/nvidia-container-devicesall"}]).manifest,
        "HC027",
    ),
    "names a card to NVIDIA's plugin": (plain.annotated({"nvidia.cdi.k8s.io": "nvidia.com/gpu=all"}).manifest, "HC027"),
    "switches control off": (shared_variable("CUDA_DISABLE_CONTROL"), "HC022"),
    "mounts a device": (mounting("/dev/nvidia0"), "HC024"),
    "mounts all devices": (mounting("/dev"), "HC024"),
    "mounts everything": (mounting("/"), "HC024"),
    "mounts by another path": (mounting("/proc/1/root/dev"), "HC024"),
    "mounts the socket of NRI": (mounting("/var/run/nri/nri.sock"), "HC024"),
    "mounts processes": (mounting("/proc"), "HC024"),
    "mounts kubelet's pods": (mounting("/var/lib/kubelet/pods"), "HC024"),
    "mounts the scheduler's key": (mounting("/etc/kubernetes/halfcard"), "HC024"),
    "mounts the runtime's configuration": (mounting("/etc/containerd"), "HC024"),
    "mounts programs": (mounting("/usr/bin"), "HC024"),
    "mounts the runtime": (mounting("/var/run/docker.sock"), "HC024"),
    "lists devices by annotation": (plain.annotated({"cdi.k8s.io/x": "nvidia.com/gpu=all"}).manifest, "HC027"),
    "sees other processes": (share.specified(hostPID=True).manifest, "HC025"),
    "forges a record": (plain.annotated({f"{names.TENCENT}/predicate-gpu-idx-0": "1"}).manifest, "HC020"),
    "pretends to be a mirror pod": (
        plain.annotated({names.MIRROR_POD: "x", f"{names.TENCENT}/gpu-assigned": "true"}).manifest,
        "HC020",
    ),
    "asks for a device class": (
        pod().asks(**{"deviceclass.resource.kubernetes.io/gpu.nvidia.com": "8"}).manifest,
        "HC017",
    ),
    "claims a GPU": (
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "c"},
            "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
        },
        "HC017",
    ),
    "names its node": (share.specified(nodeName="gpu1").manifest, "HC026"),
    "requests more than 32 bits": (pod().asks(gpu="4294967297").manifest, "HC001"),
    "uses two dialects": (pod().asks(core="30", memory="20", gpu="1").manifest, "HC010"),
}
UNPROTECTED: Final[Mapping[str, dict[str, Any]]] = {
    "Images that set": plain.manifest,
    "Other prefixes of annotations": plain.annotated({"mine.example.com/x": "nvidia.com/gpu=all"}).manifest,
    "Secrets always": importing(secretRef=of_map("s")),
    "ConfigMaps in a cluster": importing(configMapRef=of_map("unknown")),
    "an entry point": pod()
    .container(
        limits={names.VCUDA_CORE: "30", names.VCUDA_MEMORY: "20"}, command=["sh", "-c", "LD_PRELOAD=/x.so exec app"]
    )
    .manifest,
    "Privileged pods without a claim": pod().container(securityContext={"privileged": True}).manifest,
    "`hostPath` in general": mounting("/data/link-that-another-pod-made"),
    "PersistentVolumes": plain.specified(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]).manifest,
    "Dynamic Resource Allocation where it is allowed": plain.specified(resourceClaims=[{"name": "c"}]).manifest,
    "nvidia.com/mig-": pod().asks(**{"nvidia.com/mig-1g.5gb": "1"}).manifest,
}


def codes_of(manifest: Mapping[str, Any], cluster: ClusterView = NOTHING_KNOWN) -> list[str]:
    return [problem.code for problem in Judge(AdmissionPolicy(), cluster).review(manifest).verdict.problems]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_what_the_page_calls_refused_is_refused(attempt: str) -> None:
    manifest, code = ATTEMPTS[attempt]
    assert codes_of(manifest, KNOWN) == [code]
    assert code in PAGE


@pytest.mark.parametrize("gap", UNPROTECTED)
def test_what_the_page_calls_unprotected_is_admitted(gap: str) -> None:
    assert codes_of(UNPROTECTED[gap]) == []
    assert gap in re.sub(r"\s+", " ", PAGE)
