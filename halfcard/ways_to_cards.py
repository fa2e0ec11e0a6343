"""Every way to a card beside requests: the variables, mounts and annotations that a program on the node obeys.

A row says which program reads the name, in the version whose source was read, and what it does. `tests/admission/rules`
has a case for every row. Names that only this table needs are spelled here; all others are in `halfcard.names`.
"""

from __future__ import annotations

import posixpath
import re
from enum import Enum
from typing import Final, NamedTuple

from halfcard import names


class Effect(Enum):
    CHOOSES = "chooses what a container sees of cards: refused in every pod"
    BRINGS = "brings all cards of a node unless they are hidden: hidden in containers without a claim"
    LOOSENS = "replaces, feeds or switches off what holds a container to its share: refused with a share"
    MAY_LOOSEN = "as above, but images set it for good reasons: a warning with a share"
    NOTHING = "gives no card and loosens nothing: admitted"


class Variable(NamedTuple):
    """A variable of containers.

    Attributes:
        begins: whether every variable that begins so is meant.
        harmless: values without effect.
    """

    name: str
    effect: Effect
    reader: str
    why: str
    harmless: frozenset[str] = frozenset()
    begins: bool = False

    def is_named(self, name: str) -> bool:
        return name.startswith(self.name) if self.begins else name == self.name

    def could_be_named(self, prefix: str) -> bool:
        """Returns whether a name that begins with the prefix can be this one."""
        return self.name.startswith(prefix) or (self.begins and prefix.startswith(self.name))


class Mount(NamedTuple):
    """A path in containers: there and below, or every path that begins so."""

    path: str
    effect: Effect
    reader: str
    why: str
    begins: bool = False

    def is_meant(self, path: str) -> bool:
        return path == self.path or path.startswith(self.path if self.begins else self.path + "/")


class Annotation(NamedTuple):
    """An annotation of pods: every key that begins so, or whose domain has the text `anywhere`."""

    text: str
    reader: str
    why: str
    anywhere: bool = False

    def is_meant(self, key: str) -> bool:
        return self.text in key.partition("/")[0] if self.anywhere else key.startswith(self.text)


_TOOLKIT: Final = "NVIDIA container toolkit 1.20"
_HAMI_CORE: Final = "HAMi-core of 2026-06"
_GPU_MANAGER: Final = "gpu-manager of 2023-10"
_VCUDA: Final = "vcuda-controller of 2022-11"
_LOADER: Final = "the loader of glibc"
_HAMI: Final = "HAMi 2.10"
_INJECTOR: Final = "NRI's device injector 0.12"
_CRIO: Final = "CRI-O 1.36"

_NO_CARD: Final = names.SEES_NOTHING_VALUES | {""}
_CHOOSES, _BRINGS, _LOOSENS = Effect.CHOOSES, Effect.BRINGS, Effect.LOOSENS
_MAY_LOOSEN, _NOTHING = Effect.MAY_LOOSEN, Effect.NOTHING
_UNSET: Final = frozenset({""})

VARIABLES: Final = (
    Variable(names.VISIBLE_DEVICES, _CHOOSES, _TOOLKIT, "the cards of the container", _NO_CARD),
    Variable("DOCKER_RESOURCE_GPU", _CHOOSES, _TOOLKIT, "comes before the variable above where configured", _NO_CARD),
    Variable("NVIDIA_MIG_CONFIG_DEVICES", _CHOOSES, _TOOLKIT, "may divide these cards", _UNSET),
    Variable("NVIDIA_MIG_MONITOR_DEVICES", _CHOOSES, _TOOLKIT, "may watch all parts of these cards", _UNSET),
    Variable("NVIDIA_IMEX_CHANNELS", _CHOOSES, _TOOLKIT, "memory that cards of several nodes share", _UNSET),
    Variable("NVIDIA_NVSWITCH", _CHOOSES, _TOOLKIT, "`enabled` adds the switches of all cards", _UNSET),
    Variable(
        "CUDA_VERSION", _BRINGS, _TOOLKIT, "an image from before 2017: all cards, unless a variable hides them", _UNSET
    ),
    Variable("NVIDIA_REQUIRE_", _NOTHING, _TOOLKIT, "conditions on driver and card", begins=True),
    Variable("NVIDIA_DISABLE_REQUIRE", _NOTHING, _TOOLKIT, "ignores the conditions above"),
    Variable(names.DRIVER_CAPABILITIES, _NOTHING, _TOOLKIT, "which libraries of the driver"),
    Variable("NVIDIA_GDS", _NOTHING, _TOOLKIT, "adds the files of GPUDirect Storage, which are useless without a card"),
    Variable("NVIDIA_GDRCOPY", _NOTHING, _TOOLKIT, "adds `/dev/gdrdrv`, which is useless without a card"),
    Variable("NVIDIA_MOFED", _NOTHING, _TOOLKIT, "adds network cards"),
    Variable("LD_PRELOAD", _LOOSENS, _LOADER, "loads another library before the one that limits"),
    Variable("LD_AUDIT", _LOOSENS, _LOADER, "loads a library that may replace every symbol"),
    Variable(names.LIBRARY_PATH, _MAY_LOOSEN, _LOADER, "where the library that limits is looked for"),
    Variable(names.CUDA_CORES_VARIABLE, _LOOSENS, _HAMI_CORE, "the limit of cores, also `_N` of one card", begins=True),
    Variable(
        "CUDA_DEVICE_MEMORY_", _LOOSENS, _HAMI_CORE, "the limits of memory, and the file that counts it", begins=True
    ),
    Variable("CUDA_DISABLE_CONTROL", _LOOSENS, _HAMI, "`true`: the library is not mounted"),
    Variable("CUDA_OVERSUBSCRIBE", _LOOSENS, _HAMI, "memory of the host counts as memory of the card"),
    Variable("CUDA_TASK_PRIORITY", _LOOSENS, _HAMI_CORE, "0 is never throttled"),
    Variable("CUDA_REDIRECT", _LOOSENS, _HAMI_CORE, "another file is loaded as the library that limits"),
    Variable("GPU_CORE_UTILIZATION_POLICY", _LOOSENS, _HAMI_CORE, "`DISABLE`: cores are not limited"),
    Variable("ACTIVE_OOM_KILLER", _LOOSENS, _HAMI_CORE, "`false`: a process that took too much is not ended"),
    Variable("LIBCUDA_LOG_LEVEL", _NOTHING, _HAMI_CORE, "how much is logged"),
    Variable("CGPU_DISABLE", _LOOSENS, "Alibaba's cGPU", "switches the module of the kernel off for the container"),
    Variable(
        names.ALIYUN_RECORD_PREFIX, _LOOSENS, "gpushare and cGPU", "card and memory of the container", begins=True
    ),
    Variable("VOLCANO_GPU_", _LOOSENS, "Volcano's device plugin", "card and memory of the container", begins=True),
    Variable("HALFCARD_", _LOOSENS, "Halfcard", "card and limits of the container", begins=True),
    Variable("compat32", _LOOSENS, _GPU_MANAGER, "`true`: 64-bit programs do not find the library that limits"),
    Variable("LOGGER_LEVEL", _NOTHING, _VCUDA, "how much is logged"),
    Variable("CUDA_VISIBLE_DEVICES", _NOTHING, "CUDA", "hides cards that the container has"),
)
"""Where two rows fit a name, the first one counts."""

NVIDIA_RUNTIME: Final = "nvidia"
"""Within the names of runtime classes whose containers get the cards that their image names: `nvidia`, `nvidia-cdi`."""

DEVICE_LIST: Final = "nvidia-container-devices"
"""Within the path of every mount that names a card to NVIDIA's runtime."""

MOUNTS: Final = (
    Mount(f"/run/{DEVICE_LIST}", _CHOOSES, _TOOLKIT, "what follows is a card, also without a slash", begins=True),
    Mount("/etc/ld.so.preload", _LOOSENS, _LOADER, "HAMi names its library there"),
    Mount("/usr/local/vgpu", _LOOSENS, _HAMI, "the library that limits, and the file that counts"),
    Mount("/tmp/vgpulock", _LOOSENS, _HAMI, "the lock by which containers of a card count in turn"),  # noqa: S108  # a path in containers
    Mount("/overrideEnv", _LOOSENS, _HAMI_CORE, "a file of variables, which overrides those of the node agent"),
    Mount("/etc/vcuda", _LOOSENS, _VCUDA, "the limits of the container"),
    Mount("/usr/local/nvidia", _LOOSENS, _GPU_MANAGER, "the library that limits"),
    Mount(posixpath.dirname(names.LIMITS_FILE), _LOOSENS, "Halfcard", "the limits of the container"),
    Mount(names.RUN_FOLDER, _LOOSENS, "Halfcard", "the library that limits, and its files"),
)
"""Mounts of a pod come after those of node agents, and cover them. /var/run is /run here."""

ANNOTATIONS: Final = (
    Annotation("cdi.k8s.io", f"containerd 2, {_CRIO}, {_TOOLKIT} and its NRI plugin", "CDI devices", anywhere=True),
    Annotation("cdi-devices.noderesource.dev", _INJECTOR, "CDI devices"),
    Annotation("cdi-devices.nri.io", _INJECTOR, "CDI devices"),
    Annotation("devices.noderesource.dev", _INJECTOR, "device files of the node"),
    Annotation("devices.nri.io", _INJECTOR, "device files of the node"),
    Annotation("mounts.noderesource.dev", _INJECTOR, "folders of the node"),
    Annotation("mounts.nri.io", _INJECTOR, "folders of the node"),
    Annotation("devices.crio.io", _CRIO, "device files of the node"),
    Annotation("io.kubernetes.cri-o.Devices", _CRIO, "device files of the node"),
    Annotation("org.systemd.property.Device", f"runc 1, {_CRIO}", "which device files the container may open"),
)
ANNOTATION_HINTS: Final = ("cdi", "evice", "mounts.")
"""Each annotation above contains one of these: so the API server looks for few texts, and sends a few pods too many."""


def mount_row(path: str) -> Mount | None:
    """Returns the row of a path in containers; most paths need one look."""
    if _MOUNT_HINT.search(path) is None:
        return None
    real = posixpath.normpath("/" + path.lstrip("/"))
    real = real.removeprefix("/var") if real.startswith("/var/run/") else real
    return next((row for row in MOUNTS if row.is_meant(real)), None)


def names_devices(key: str) -> bool:
    """Returns whether an annotation gives devices to containers."""
    return any(map(key.__contains__, ANNOTATION_HINTS)) and any(row.is_meant(key) for row in ANNOTATIONS)


def variable_row(name: str) -> Variable | None:
    """Returns the row of a variable; None for a variable that no program of ours knows."""
    return _BY_NAME.get(name) or next((row for row in _BY_BEGINNING if row.is_named(name)), None)


_MOUNT_HINT: Final = re.compile("|".join(re.escape(posixpath.basename(row.path)) for row in MOUNTS))
_BY_NAME: Final = {row.name: row for row in VARIABLES if not row.begins}
_BY_BEGINNING: Final = tuple(row for row in VARIABLES if row.begins)
WATCHED: Final = tuple(row.name for row in VARIABLES if row.effect is not _NOTHING)
"""Beginnings of all names that matter: most variables begin with none of them."""
