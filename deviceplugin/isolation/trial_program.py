"""`python -m deviceplugin.isolation.trial_program CARD SHARE_MIB LIBRARY...`: does what a held container does, and
prints why that fails; nothing where the libraries hold.

It is a process of its own because a driver that hangs or crashes takes its caller with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CDLL, CFUNCTYPE, Structure, byref, c_int, c_size_t, c_uint64, c_ulonglong, c_void_p
from ctypes import create_string_buffer as buffer
from typing import Final
from uuid import UUID

from halfcard import names

_MIB: Final = 1 << 20
_OUT_OF_MEMORY: Final = 2
_CUDA_12: Final = 12000
_INSIDE_MIB: Final = 2
_UUID_CHARS: Final = 96


class _FailedError(Exception):
    """The libraries do not hold; the text says why."""


class _Memory(Structure):
    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


def main(card: str, share_mib: str, *libraries: str) -> str:
    share = int(share_mib) * _MIB
    try:
        for library in libraries:
            _TRIALS[library](_loaded(library), card, share)
    except _FailedError as why:
        return str(why)
    return ""


def _loaded(library: str) -> CDLL:
    try:
        return CDLL(library)
    except OSError as error:
        raise _FailedError(f"{library} cannot be loaded: {error}") from None


def _try_cuda(cuda: CDLL, card: str, share: int) -> None:
    _must(cuda.cuInit(0), "cuInit")
    device, total = _cuda_device(cuda, UUID(card.removeprefix("GPU-")).bytes), c_size_t()
    _must(cuda.cuDeviceTotalMem_v2(byref(total), device), "cuDeviceTotalMem")
    _equal(total.value, share, "cuDeviceTotalMem")
    with _context(cuda, device):
        for name, allocate in _allocators(cuda):
            _try_allocations(cuda, name, allocate, share)


def _cuda_device(cuda: CDLL, card: bytes) -> int:
    count, uuid = c_int(), buffer(16)
    _must(cuda.cuDeviceGetCount(byref(count)), "cuDeviceGetCount")
    for device in range(count.value):
        _must(cuda.cuDeviceGetUuid(uuid, device), "cuDeviceGetUuid")
        if uuid.raw == card:
            return device
    raise _FailedError("CUDA does not list the card that NVML lists")


@contextmanager
def _context(cuda: CDLL, device: int) -> Iterator[None]:
    context = c_void_p()
    _must(cuda.cuDevicePrimaryCtxRetain(byref(context), device), "cuDevicePrimaryCtxRetain")
    try:
        _must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        yield
    finally:
        cuda.cuDevicePrimaryCtxRelease_v2(device)


def _allocators(cuda: CDLL) -> Iterator[tuple[str, Callable[..., int]]]:
    """Yields the two ways to the function: by its name, and as CUDA's runtime asks for it, since CUDA 11.3."""
    yield "cuMemAlloc", cuda.cuMemAlloc_v2
    if hasattr(cuda, "cuGetProcAddress"):
        found = c_void_p()
        _must(cuda.cuGetProcAddress(b"cuMemAlloc", byref(found), _CUDA_12, c_uint64(0)), "cuGetProcAddress")
        yield "cuGetProcAddress", CFUNCTYPE(c_int, c_void_p, c_size_t)(found.value or 0)


def _try_allocations(cuda: CDLL, name: str, allocate: Callable[..., int], share: int) -> None:
    made = c_uint64()
    answer = allocate(byref(made), c_size_t(share + _MIB))
    if answer != _OUT_OF_MEMORY:
        raise _FailedError(f"an allocation over the share, by {name}, was answered {answer} instead of OUT_OF_MEMORY")
    _must(allocate(byref(made), c_size_t(_INSIDE_MIB * _MIB)), f"an allocation within the share, by {name},")
    _must(cuda.cuMemFree_v2(made), "cuMemFree")


def _try_nvml(nvml: CDLL, card: str, share: int) -> None:
    _must(nvml.nvmlInit_v2(), "nvmlInit")
    memory = _Memory()
    _must(nvml.nvmlDeviceGetMemoryInfo(_nvml_device(nvml, card), byref(memory)), "nvmlDeviceGetMemoryInfo")
    _equal(memory.total, share, "NVML")


def _nvml_device(nvml: CDLL, card: str) -> c_void_p:
    count, device, uuid = c_int(), c_void_p(), buffer(_UUID_CHARS)
    _must(nvml.nvmlDeviceGetCount_v2(byref(count)), "nvmlDeviceGetCount")
    for at in range(count.value):
        answer = nvml.nvmlDeviceGetHandleByIndex_v2(at, byref(device))
        if not answer and not nvml.nvmlDeviceGetUUID(device, uuid, _UUID_CHARS) and uuid.value == card.encode():
            return device
    raise _FailedError("NVML does not list the card any more")


def _must(answer: int, what: str) -> None:
    if answer == _OUT_OF_MEMORY:
        raise _FailedError(f"{what} was answered OUT_OF_MEMORY: no card has memory left to try it")
    if answer:
        raise _FailedError(f"{what} was answered {answer}")


def _equal(shown: int, share: int, where: str) -> None:
    if shown != share:
        raise _FailedError(f"{where} shows {shown // _MIB} MiB instead of the share of {share // _MIB} MiB")


_TRIALS: Final[dict[str, Callable[[CDLL, str, int], None]]] = {
    names.CUDA_LIBRARY: _try_cuda,
    names.NVML_LIBRARY: _try_nvml,
}

if __name__ == "__main__":
    sys.stdout.write(main(*sys.argv[1:]))
