"""Reads what one card is, and its state now, from the driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import pynvml  # type: ignore[import-untyped]

from .driver import GONE, answer_or, as_sentence
from .interface import Gpu

MIB: Final = 2**20
STALE: Final = GONE | {pynvml.NVML_ERROR_INVALID_ARGUMENT}
"""INVALID_ARGUMENT: the driver does not know the handle any more."""

_LOST: Final = frozenset(
    {pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED, pynvml.NVML_ERROR_GPU_NOT_FOUND}
)

_WANTED: Final = {
    pynvml.NVML_GPU_RECOVERY_ACTION_GPU_RESET: "the driver asks for a reset of the card",
    pynvml.NVML_GPU_RECOVERY_ACTION_BUS_RESET: "the driver asks for a reset of the card's bus",
    pynvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET: "the driver asks for the card to be drained and reset",
    pynvml.NVML_GPU_RECOVERY_ACTION_NODE_REBOOT: "the driver asks for a reboot of the machine",
    pynvml.NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT: "the driver asks for a reboot of the machine",
}


class KnownCard(NamedTuple):
    """A card's handle, and the facts that do not change while the driver is open."""

    handle: Any
    gpu: Gpu


def read_card(index: int, sysfs: Path) -> KnownCard | None:
    """Reads a card; None for one that the driver cannot name because it was lost before the driver was opened."""
    handle = answer_or(None, pynvml.nvmlDeviceGetHandleByIndex, index)
    uuid = answer_or("", pynvml.nvmlDeviceGetUUID, handle) if handle else ""
    if not uuid:
        return None
    place = answer_or(None, pynvml.nvmlDeviceGetPciInfo, handle)
    pci = place.busId.upper() if place else ""
    minor = answer_or(index, pynvml.nvmlDeviceGetMinorNumber, handle)
    model = answer_or("", pynvml.nvmlDeviceGetName, handle)
    return KnownCard(handle, Gpu(minor, uuid, model, 0, pci, _numa(handle, pci, sysfs)))


def _numa(handle: Any, pci: str, sysfs: Path) -> int | None:
    """Reads the NUMA node from sysfs like other plugins, so that kubelet finds them consistent; else from the
    driver.
    """
    domain, _, place = pci.partition(":")
    try:
        node = int((sysfs / f"bus/pci/devices/{int(domain, 16):04x}:{place.lower()}/numa_node").read_text())
    except (OSError, ValueError):
        node = -1
    return node if node >= 0 else _only_node(handle)


def _only_node(handle: Any) -> int | None:
    """Returns the nearest NUMA node; None where there are several."""
    words = answer_or((), pynvml.nvmlDeviceGetMemoryAffinity, handle, 1, pynvml.NVML_AFFINITY_SCOPE_NODE)
    nodes = [bit for bit in range(64) if words and words[0] >> bit & 1]
    return nodes[0] if len(nodes) == 1 else None


def read_state(card: KnownCard) -> Gpu | None:
    """Reads the facts that may change; None for a lost card.

    Raises:
        NVMLError: one of STALE.
    """
    try:
        memory_mib = pynvml.nvmlDeviceGetMemoryInfo(card.handle).total // MIB
    except pynvml.NVMLError as error:
        if error.value in STALE:
            raise
        return None if error.value in _LOST else card.gpu._replace(trouble=as_sentence(error))
    mig = answer_or(None, pynvml.nvmlDeviceGetMigMode, card.handle)
    is_mig = bool(mig) and pynvml.NVML_DEVICE_MIG_ENABLE in mig  # now, or from the next reset on
    return card.gpu._replace(memory_mib=memory_mib, is_mig=is_mig, trouble=_trouble(card.handle))


def _trouble(handle: Any) -> str:
    fields = answer_or((), pynvml.nvmlDeviceGetFieldValues, handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    if fields and fields[0].nvmlReturn == pynvml.NVML_SUCCESS and fields[0].value.uiVal in _WANTED:
        return _WANTED[fields[0].value.uiVal]
    rows = answer_or(None, pynvml.nvmlDeviceGetRemappedRows, handle)
    return "rows of its memory are broken and cannot be replaced: exchange the card" if rows and rows[-1] else ""
