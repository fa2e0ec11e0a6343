"""Makes nodes with GPUs for kwok from a table, as each system's own node agent would publish them.

Law: a row describes the machines; the resource amounts of each system follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from halfcard import names
from halfcard.claims import UNIT_MIB, WHOLE_CARD

from ..build.binaries import kubernetes_module, kubernetes_version
from ..objects import Object

MARK: Final = {"kwok.x-k8s.io/node": "fake"}
"""The annotation of nodes that kwok runs."""

_MIB_IN_GIB: Final = 1024
SLICES: Final = 4
"""Slices of each card on nodes with time-slicing."""

_HAMI_SLOTS: Final = 10
_MACHINE: Final = {"cpu": "128", "memory": "1Ti", "pods": "110"}


@dataclass(frozen=True, slots=True)
class GpuNodes:
    """A row of the table: `count` equal machines. The system is a key of SYSTEMS."""

    count: int
    model: str
    card_mib: int
    system: str = "gpu-manager"
    cards: int = 8


def _gpu_manager(row: GpuNodes) -> dict[str, int]:
    units = row.card_mib // UNIT_MIB
    return {names.VCUDA_CORE: row.cards * WHOLE_CARD, names.VCUDA_MEMORY: row.cards * units}


def _half_cards(row: GpuNodes) -> dict[str, int]:
    return {names.NVIDIA_GPU: row.cards, names.TUYA_SGPU: 2 * row.cards}


def _tuya(row: GpuNodes) -> dict[str, int]:
    """Offers whole cards, halves and memory of the same cards."""
    return {**_half_cards(row), names.TUYA + names.VCUDA_MEMORY_SUFFIX: row.cards * (row.card_mib // UNIT_MIB)}


def _gpushare(row: GpuNodes) -> dict[str, int]:
    return {names.ALIYUN_GPU_COUNT: row.cards, names.ALIYUN_GPU_MEM: row.cards * (row.card_mib // _MIB_IN_GIB)}


def _volcano(row: GpuNodes) -> dict[str, int]:
    return {names.VOLCANO_GPU_NUMBER: row.cards, names.VOLCANO_GPU_MEMORY: row.cards * row.card_mib}


def _nvidia(row: GpuNodes) -> dict[str, int]:
    return {names.NVIDIA_GPU: row.cards}


def _time_slices(row: GpuNodes) -> dict[str, int]:
    return {names.NVIDIA_GPU_SHARED: SLICES * row.cards}


def _hami(row: GpuNodes) -> dict[str, int]:
    """Offers slots, not cards: HAMi's scheduler reads memory and cores from an annotation."""
    return {names.NVIDIA_GPU: _HAMI_SLOTS * row.cards}


SYSTEMS: Final[Mapping[str, Callable[[GpuNodes], dict[str, int]]]] = {
    "gpu-manager": _gpu_manager,
    "tuya-half-cards": _half_cards,
    "tuya": _tuya,
    "gpushare": _gpushare,
    "volcano": _volcano,
    "nvidia": _nvidia,
    "time-slices": _time_slices,
    "hami": _hami,
}

_SHARES: Final = (
    (GpuNodes(50, "Tesla-T4", 15360), 50),
    (GpuNodes(20, "Tesla-V100-SXM2-32GB", 32768), 20),
    (GpuNodes(10, "NVIDIA-A10", 23028, "gpushare"), 10),
    (GpuNodes(10, "NVIDIA-A100-SXM4-80GB", 81920, "volcano"), 10),
    (GpuNodes(10, "NVIDIA-H100-80GB-HBM3", 81559, "nvidia"), 10),
)


def fleet(nodes: int) -> list[GpuNodes]:
    """Returns a mixed data centre of that many nodes with 8 cards each; what rounding leaves is of the first kind."""
    rows = [replace(row, count=nodes * per_cent // 100) for row, per_cent in _SHARES]
    left_over = nodes - sum(row.count for row in rows)
    return [replace(rows[0], count=rows[0].count + left_over), *rows[1:]]


def gpu_nodes(table: Sequence[GpuNodes]) -> Iterator[Object]:
    """Returns Node objects, named after system and model and numbered within their row."""
    for row in table:
        for number in range(row.count):
            yield _node(f"{row.system}-{row.model.lower()}-{number:04}", row)


def _node(name: str, row: GpuNodes) -> Object:
    """Returns a Node with its status, as a kubelet registers itself, so that one request makes a node."""
    amounts = {resource: str(amount) for resource, amount in SYSTEMS[row.system](row).items()}
    capacity = {**_MACHINE, **amounts}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": dict(MARK), "labels": _labels(name, row)},
        "status": {"capacity": capacity, "allocatable": capacity, "nodeInfo": _node_info()},
    }


def _labels(name: str, row: GpuNodes) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": name,
        names.NVIDIA_LABEL_PRODUCT: row.model,
        names.NVIDIA_LABEL_MEMORY: str(row.card_mib),
        names.NVIDIA_LABEL_COUNT: str(row.cards),
    }


@cache
def _node_info() -> dict[str, str]:
    """Returns the fields without which the API server refuses a status."""
    unknown = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeProxyVersion")
    return {
        **dict.fromkeys(unknown, ""),
        "architecture": "amd64",
        "operatingSystem": "linux",
        "containerRuntimeVersion": "kwok",
        "kubeletVersion": kubernetes_version(kubernetes_module()),
    }
