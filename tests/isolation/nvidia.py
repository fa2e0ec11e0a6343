"""NVIDIA's own driver libraries, from Debian's packages; they need no card to be loaded, and are never shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from .debian import Package, unpacked

NEWEST: Final = ("sid", "experimental")

CUDA_PACKAGES: Final = {
    "470": Package("libnvidia-tesla-470-cuda1", component="non-free"),
    "535": Package("libcuda1", component="non-free"),
    "550": Package("libcuda1", ("trixie",), "non-free"),
    "newest": Package("libcuda1", NEWEST, "non-free"),
}
"""By branch: CUDA 11.4 to 12.5; the newest that Debian has is 555 now."""

NVML_PACKAGES: Final = {
    "470": Package("libnvidia-tesla-470-ml1", component="non-free"),
    "535": Package("libnvidia-ml1", component="non-free"),
    "550": Package("libnvidia-ml1", ("trixie",), "non-free"),
    "newest": Package("libnvidia-ml1", NEWEST, "non-free"),
}


def driver_library(package: Package, name: str = "libcuda.so") -> Path:
    return next(unpacked(package).rglob(f"{name}.[4-9]*"))
