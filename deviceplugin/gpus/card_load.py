"""Reads what runs on one card from the driver."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import pynvml  # type: ignore[import-untyped]

from .card_facts import MIB
from .driver import answer_or
from .interface import Load, Process

_RECENT_S: Final = 1.0
_WHOLE: Final = 100  # per cent of a card; drivers now and then report thousands

_KINDS: Final[tuple[tuple[Callable[[Any], Any], ...], ...]] = (
    (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2),
    (pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,),
    (pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,),
)
"""The calls that list the processes of each kind, the newest first."""


def load(handle: Any) -> Load:
    """Reads the load of a card.

    Raises:
        NVMLError: the driver does not answer for it.
    """
    used = answer_or(None, pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    if used is None:  # an older driver, which counts its own reserve as used
        used = pynvml.nvmlDeviceGetMemoryInfo(handle)
    rates = answer_or(None, pynvml.nvmlDeviceGetUtilizationRates, handle)
    return Load(used.used // MIB, rates.gpu if rates else 0, _processes(handle))


def _processes(handle: Any) -> tuple[Process, ...]:
    memory, cores = _memory(handle), _cores(handle)
    return tuple(Process(pid, memory.get(pid, 0), cores.get(pid, 0)) for pid in sorted(memory.keys() | cores.keys()))


def _memory(handle: Any) -> dict[int, int]:
    """Reads MiB by process: a process of two kinds is listed twice with the same memory."""
    found: dict[int, int] = {}
    for ways in _KINDS:
        for process in _first_answer(handle, ways):
            found[process.pid] = max(found.get(process.pid, 0), (process.usedGpuMemory or 0) // MIB)
    return found


def _first_answer(handle: Any, ways: tuple[Callable[[Any], Any], ...]) -> Any:
    for ask in ways:
        answer = answer_or(None, ask, handle)
        if answer is not None:
            return answer
    return ()


def _cores(handle: Any) -> dict[int, int]:
    """Reads the per cent of cores by process, from the latest sample; an idle process has none."""
    since_us = int((time.time() - _RECENT_S) * 1_000_000)
    samples = answer_or((), pynvml.nvmlDeviceGetProcessUtilization, handle, since_us)
    return {
        sample.pid: sample.smUtil
        for sample in sorted(samples, key=lambda sample: sample.timeStamp)
        if sample.smUtil <= _WHOLE
    }
