"""Opens and closes NVIDIA's library through `pynvml`, and explains its errors.

Invariant: closing unloads the library itself, so that a driver that was replaced meanwhile brings its own.
"""

from __future__ import annotations

import _ctypes
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pynvml  # type: ignore[import-untyped]

from halfcard import names

from .interface import GpusError

GONE: Final = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
"""Errors of the whole driver: every handle is invalid."""

_SENTENCES: Final = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        f"{names.NVML_LIBRARY} is not found: install NVIDIA's driver on this node, or give the agent's container its "
        f"libraries (its runtime class, or {names.LIBRARY_PATH})"
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        "NVIDIA's driver is not loaded: load it into this node's kernel (modprobe nvidia), or wait for its installer"
    ),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        f"NVIDIA's driver in the kernel is of another version than {names.NVML_LIBRARY}: reboot the node, or load "
        "the kernel module that came with the library"
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: (
        f"NVIDIA's driver may not be opened: give the agent's container {names.DEVICE_FILES}ctl and the cards' "
        f"{names.DEVICE_FILES}N"
    ),
}


def open_driver() -> None:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        _let_library_go()
        raise


def close_driver() -> None:
    """Closes the library; only while no call is under way."""
    with suppress(pynvml.NVMLError):  # a driver that is gone refuses
        pynvml.nvmlShutdown()
    _let_library_go()


def _let_library_go() -> None:
    library = pynvml.nvmlLib
    pynvml.nvmlLib = None
    pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - they point into the library
    if library is not None:
        _ctypes.dlclose(library._handle)  # noqa: SLF001 - ctypes has no other way


def answer_or(otherwise: Any, ask: Callable[..., Any], *about: Any) -> Any:
    """Returns the answer; `otherwise` where the card, its driver or our rights do not support the call."""
    try:
        return ask(*about)
    except pynvml.NVMLError as error:
        if error.value in GONE:
            raise
        return otherwise


def as_sentence(error: pynvml.NVMLError) -> str:
    return f'the driver answers "{error}" (NVML error {error.value})'


def as_gpus_error(error: pynvml.NVMLError) -> GpusError:
    advice = f"{as_sentence(error)}: the kernel's log says more (dmesg | grep NVRM)"
    return GpusError(_SENTENCES.get(error.value, advice))
