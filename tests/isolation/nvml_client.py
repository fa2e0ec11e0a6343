"""Prints what NVML answers about each card, as JSON by the function; where one fails, the number of the error."""

import ctypes
import json
from collections.abc import Callable
from typing import Any

import pynvml  # type: ignore[import-untyped]

GIVEN = ("Compute", "Graphics", "MPSCompute")


class FirstInfo(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong))


def first_list(card: Any) -> list[list[int]] | int:
    library, room, found = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint(), (FirstInfo * 8)()
    error = library.nvmlDeviceGetComputeRunningProcesses(card, ctypes.byref(room), None)
    if error not in {pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_INSUFFICIENT_SIZE}:
        return int(error)
    needed, room = room.value, ctypes.c_uint(8)
    error = library.nvmlDeviceGetComputeRunningProcesses(card, ctypes.byref(room), found)
    assert error == pynvml.NVML_SUCCESS and room.value == needed, (error, room)
    return [[one.pid, one.used] for one in found[:needed]]


def processes(found: Any) -> list[list[int]]:
    return [[one.pid, one.usedGpuMemory] for one in found]


def memory(found: Any) -> list[int]:
    return [found.total, found.used, found.free, getattr(found, "reserved", 0)]


def answer(plain: Callable[[Any], Any], name: str, *arguments: Any) -> Any:
    try:
        return plain(getattr(pynvml, name)(*arguments))
    except pynvml.NVMLError as error:
        return error.value


def answers(card: Any) -> dict[str, Any]:
    return {
        "name": answer(str, "nvmlDeviceGetName", card),
        "first list": first_list(card),
        "v2": answer(processes, "nvmlDeviceGetComputeRunningProcesses_v2", card),
        **{kind: answer(processes, f"nvmlDeviceGet{kind}RunningProcesses", card) for kind in GIVEN},
        "utilization": answer(list, "nvmlDeviceGetProcessUtilization", card, 0),
        "memory": answer(memory, "nvmlDeviceGetMemoryInfo", card),
        "memory_v2": answer(memory, "nvmlDeviceGetMemoryInfo", card, pynvml.nvmlMemory_v2),
    }


def main() -> None:
    pynvml.nvmlInit()
    cards = [pynvml.nvmlDeviceGetHandleByIndex(at) for at in range(pynvml.nvmlDeviceGetCount())]
    print(json.dumps([answers(card) for card in cards]))  # noqa: T201  what the test reads


main()
