"""Names the programs that are built, and the folder of each build.

Law: a build's folder is named after the hash of its inputs, so equal inputs are never built twice.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import CannotStartError

MODULES = Path(__file__).parent / "tools"


@dataclass(frozen=True, slots=True)
class ProgramGroup:
    """Programs that are built together; minutes and gigabytes are those of a cold build on 2 cores.

    Attributes:
        then: the same after another group with shared packages; None where sharing saves nothing.
    """

    family: str
    packages: Mapping[str, str]
    minutes: int
    gigabytes: int
    then: tuple[int, int] | None = None

    @property
    def module(self) -> str:
        return kubernetes_module() if self.family == _NEWEST else self.family


MINOR_VARIABLE = "HALFCARD_KUBERNETES"
"""Names a Kubernetes minor that has a module, such as 1.34; the newest where it is not set."""

_NEWEST = "kubernetes"
_KUBERNETES = "k8s.io/kubernetes/cmd"
_CONTAINERD = "github.com/containerd/containerd/v2/cmd"

GROUPS: Mapping[str, ProgramGroup] = {
    "control-plane": ProgramGroup(
        "kubernetes",
        {
            "etcd": "go.etcd.io/etcd/server/v3",
            "kube-apiserver": f"{_KUBERNETES}/kube-apiserver",
            "kube-controller-manager": f"{_KUBERNETES}/kube-controller-manager",
            "kube-scheduler": f"{_KUBERNETES}/kube-scheduler",
            "kubectl": f"{_KUBERNETES}/kubectl",
        },
        minutes=5,
        gigabytes=6,
    ),
    "node": ProgramGroup("kubernetes", {"kubelet": f"{_KUBERNETES}/kubelet"}, minutes=6, gigabytes=6, then=(1, 1)),
    "kwok": ProgramGroup("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, minutes=3, gigabytes=2, then=(1, 1)),
    "helm": ProgramGroup("helm", {"helm": "helm.sh/helm/v4/cmd/helm"}, minutes=3, gigabytes=2, then=(2, 1)),
    "containerd": ProgramGroup(
        "containerd",
        {
            "containerd": f"{_CONTAINERD}/containerd",
            "containerd-shim-runc-v2": f"{_CONTAINERD}/containerd-shim-runc-v2",
            "ctr": f"{_CONTAINERD}/ctr",
        },
        minutes=2,
        gigabytes=1,
        then=(1, 1),
    ),
    "pod-handler": ProgramGroup("pod-handler", {"pod-handler": "halfcard.dev/pod-handler"}, minutes=1, gigabytes=1),
}


def price(groups: Sequence[ProgramGroup]) -> tuple[int, int]:
    """Returns minutes and gigabytes of building the groups in this order; only the first is a cold build."""
    cold = [(group.minutes, group.gigabytes) for group in groups]
    costs = cold[:1] + [group.then or alone for group, alone in zip(groups[1:], cold[1:], strict=True)]
    return sum(minutes for minutes, _ in costs), sum(gigabytes for _, gigabytes in costs)


_WITHOUT = {"containerd": "no_devmapper,no_rdt,no_systemd,no_tracing,no_zfs"}
"""Build tags that leave out what is not needed here."""


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "halfcard" / "cluster-tools"


def kubernetes_module() -> str:
    """Returns the module of the minor in the environment, or of the newest."""
    modules = {_minor(path.name): path.name for path in MODULES.glob(f"{_NEWEST}*")}
    wanted = os.environ.get(MINOR_VARIABLE) or _minor(_NEWEST)
    if wanted not in modules:
        raise CannotStartError(
            f"{MINOR_VARIABLE}={wanted} has no module in {MODULES}: use {' or '.join(sorted(modules))}, or add one as "
            "devcluster/README.md describes."
        )
    return modules[wanted]


def _minor(module: str) -> str:
    return ".".join(kubernetes_version(module).removeprefix("v").split(".")[:2])


def kubernetes_version(module: str) -> str:
    """Returns the Kubernetes version that a module pins, such as v1.36.3; "" for a module without Kubernetes."""
    pinned = re.search(r"\bk8s\.io/kubernetes (v\S+)", (MODULES / module / "go.mod").read_text())
    return pinned.group(1) if pinned else ""


def build_flags(module: str) -> list[str]:
    """Returns the flags of `go build`; without the linker's -X the programs would report the version v0.0.0-master."""
    linker = ["-s", "-w"]
    version = kubernetes_version(module)
    if version:
        major, minor, _ = version.removeprefix("v").split(".", 2)
        stamp = "k8s.io/component-base/version"
        linker += [
            f"-X {stamp}.git{key}={value}" for key, value in (("Version", version), ("Major", major), ("Minor", minor))
        ]
    without = [f"-tags={_WITHOUT[module]}"] if module in _WITHOUT else []
    return ["-trimpath", "-buildvcs=false", *without, f"-ldflags={' '.join(linker)}"]


def build_folder(module: str) -> Path:
    inputs = [file.read_bytes() for file in sorted((MODULES / module).iterdir())]
    key = hashlib.sha256(b"\0".join([*inputs, *(flag.encode() for flag in build_flags(module))])).hexdigest()[:16]
    return cache_folder() / f"{module}-{key}"


def group_of(program: str) -> str:
    return next(name for name, group in GROUPS.items() if program in group.packages)


def program_path(program: str) -> Path:
    """Returns the path of a built program; the error for a missing one has the command that builds it."""
    name = group_of(program)
    path = build_folder(GROUPS[name].module) / program
    if not path.is_file():
        raise CannotStartError(
            f"{program} is not built yet ({path} is missing): run `python -m devcluster.build {name}`, "
            f"about {GROUPS[name].minutes} minutes on 2 cores the first time."
        )
    return path
