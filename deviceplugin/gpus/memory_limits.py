"""Limits the memory of a card by cgroup, where the driver does that (615 and newer)."""

from __future__ import annotations

from typing import Any, Final

import pynvml  # type: ignore[import-untyped]

from .card_facts import MIB
from .driver import GONE, as_sentence
from .interface import GpusError, NoMemoryLimitsError

_UNABLE: Final = frozenset(
    {pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_PERMISSION}
)


def limit_memory(handle: Any, cgroup: str, mib: int) -> None:
    """Sets the hard limit, and no guarantee.

    Raises:
        NoMemoryLimitsError: the driver does not limit memory, or does not let us.
        GpusError: the cgroup has ended.
        NVMLError: the driver does not answer.
    """
    limits = pynvml.c_nvmlSetMemoryLimits_v1_t(cgroup.encode(), 0, mib * MIB)
    try:
        pynvml.nvmlDeviceSetMemoryLimits_v1(handle, limits)
    except pynvml.NVMLError as error:
        if error.value in _UNABLE:
            raise NoMemoryLimitsError(f"the driver limits no memory by cgroup: {as_sentence(error)}") from None
        if error.value in GONE:
            raise
        raise GpusError(f"the memory of {cgroup} is not limited: {as_sentence(error)}") from None
