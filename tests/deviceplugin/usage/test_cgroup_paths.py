from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.usage.cgroup_paths import Owner, owner_of

UID: Final = "0f1a9f52-5c3e-4a0a-9d0e-6b1f8f0c7a11"
OTHER_UID: Final = "77777777-5c3e-4a0a-9d0e-6b1f8f0c7a11"
SLICE: Final = UID.replace("-", "_")
STATIC: Final = "9c6f1d0f2b7a4e55a1c2d3e4f5061728"
ID: Final = "5f" * 32
OTHER_ID: Final = "a7" * 32
OURS: Final = Owner(UID, ID)

V2: Final = {
    "cgroupfs, burstable": (f"/kubepods/burstable/pod{UID}/{ID}", OURS),
    "cgroupfs, best effort": (f"/kubepods/besteffort/pod{UID}/{ID}", OURS),
    "cgroupfs, guaranteed": (f"/kubepods/pod{UID}/{ID}", OURS),
    "cgroupfs below kubelet's cgroupRoot": (f"/a/b-c/kubepods/burstable/pod{UID}/{ID}", OURS),
    "systemd, containerd": (
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice/cri-containerd-{ID}.scope",
        OURS,
    ),
    "systemd, guaranteed": (f"/kubepods.slice/kubepods-pod{SLICE}.slice/cri-containerd-{ID}.scope", OURS),
    "systemd, cri-o": (
        f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SLICE}.slice/crio-{ID}.scope",
        OURS,
    ),
    "systemd, cri-o with crun": (f"/kubepods.slice/kubepods-pod{SLICE}.slice/crio-{ID}.scope/container", OURS),
    "systemd, docker": (f"/kubepods.slice/kubepods-pod{SLICE}.slice/docker-{ID}.scope", OURS),
    "systemd below kubelet's cgroupRoot": (
        f"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SLICE}.slice/cri-containerd-{ID}.scope",
        OURS,
    ),
    "cgroupfs, cri-o": (f"/kubepods/burstable/pod{UID}/crio-{ID}", OURS),
    "kubelet has systemd, containerd has not": (
        f"/system.slice/containerd.service/kubepods-burstable-pod{SLICE}.slice:cri-containerd:{ID}",
        OURS,
    ),
    "the node is a container itself": (f"/docker/{OTHER_ID}/kubelet/kubepods/burstable/pod{UID}/{ID}", OURS),
    "seen from a pod's own cgroup namespace, systemd": (
        f"/../../../kubepods-burstable.slice/kubepods-burstable-pod{SLICE}.slice/cri-containerd-{ID}.scope",
        OURS,
    ),
    "seen from a pod's own cgroup namespace, cgroupfs": (f"/../../pod{UID}/{ID}", OURS),
    "a pod from a file": (f"/kubepods/burstable/pod{STATIC}/{ID}", Owner(STATIC, ID)),
    "a pod from a file, systemd": (
        f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{STATIC}.slice/cri-containerd-{ID}.scope",
        Owner(STATIC, ID),
    ),
    "a cgroup that a container made": (f"/kubepods/pod{UID}/{ID}/init.scope", OURS),
    "a container within a container": (f"/kubepods/pod{UID}/{ID}/docker/{OTHER_ID}", OURS),
    "a cluster within a container": (f"/kubepods/pod{UID}/{ID}/kubepods/pod{OTHER_UID}/{OTHER_ID}", OURS),
    "a folder that was removed": (f"/kubepods/pod{UID}/{ID} (deleted)", OURS),
    "cri-o's monitor": (f"/kubepods.slice/kubepods-pod{SLICE}.slice/crio-conmon-{ID}.scope", Owner(UID, "")),
    "the pod's own folder": (f"/kubepods/burstable/pod{UID}", Owner(UID, "")),
    "kubelet without cgroups for pods": (f"/k8s.io/{ID}", Owner("", ID)),
    "a container of docker's own": (f"/system.slice/docker-{ID}.scope", Owner("", ID)),
    "a service of the node": ("/system.slice/kubelet.service", None),
    "the root": ("/", None),
    "a login": ("/user.slice/user-1000.slice/session-2.scope", None),
    "podman's own slice": ("/machine.slice/libpod_parent", None),
    "a name that only looks like a pod's": (f"/kubepods/pod{UID}x/thing", None),
}


@pytest.mark.parametrize(("path", "owner"), V2.values(), ids=V2.keys())
def test_a_process_belongs_to_the_pod_and_container_of_its_path(path: str, owner: Owner | None) -> None:
    assert owner_of(f"0::{path}\n") == owner


V1: Final = {
    "cgroupfs": f"12:pids:/kubepods/pod{UID}/{ID}\n11:cpu,cpuacct:/kubepods/pod{UID}/{ID}\n1:name=systemd:/x\n",
    "hybrid: the unified hierarchy knows no pods": f"4:memory:/kubepods/burstable/pod{UID}/{ID}\n0::/\n",
    "some are left to the runtime": f"9:rdma:/\n0::/system.slice/x.service\n4:memory:/kubepods/pod{UID}/{ID}\n",
    "one names a container alone": f"9:misc:/docker/{OTHER_ID}\n4:memory:/kubepods/pod{UID}/{ID}\n",
}


@pytest.mark.parametrize("text", V1.values(), ids=V1.keys())
def test_with_several_hierarchies_the_one_with_the_pod_counts(text: str) -> None:
    assert owner_of(text) == OURS


@pytest.mark.parametrize("text", ["", "\n", "0::", "0:", "nonsense", "0::/kubepods/pod"])
def test_text_without_a_pod_has_no_owner(text: str) -> None:
    assert owner_of(text) is None


@given(st.text(alphabet=st.characters(exclude_characters="\n")))
def test_cgroups_that_a_container_creates_do_not_change_its_pod(made: str) -> None:
    assert owner_of(f"0::/kubepods/burstable/pod{UID}/{ID}/{made}/pod{OTHER_UID}/{OTHER_ID}") == OURS


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    owner_of(text)
