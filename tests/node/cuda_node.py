"""Gives a node a stand-in for libcuda, as NVIDIA's own CDI description would mount it, and a program that uses it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from deploy.image.root import build_libraries
from halfcard import names
from tests.isolation.build import build
from tests.isolation.node import CARD_MIB, DRIVER_FLAGS, DRIVER_SOURCES
from tests.nvml.build import library_folder
from tests.nvml.stand_in import StandInCard

from .gpu_cluster import GpuCluster

CARD: Final = StandInCard("GPU-41414141-4141-4141-4141-414141414141")
DRIVER: Final = "/usr/lib/nvidia/libcuda.so.570.86.15"
_NVML: Final = "/usr/lib/nvidia/libnvidia-ml.so.570.86.15"
PROGRAM: Final = "/usr/lib/nvidia/share_client"
_SYSTEM: Final = "/usr/lib/x86_64-linux-gnu"
_LOADER: Final = "/lib64/ld-linux-x86-64.so.2"
_CARDS: Final = f"{names.RUN_FOLDER}/cards"  # where the stand-in keeps what is allocated
_DESCRIPTION: Final = "/etc/cdi/nvidia.json"


@contextmanager
def cuda_node(gpus: GpuCluster, folder: Path) -> Iterator[str]:
    """Describes the driver until the block ends; yields the agent's argument that names the isolation libraries."""
    build_libraries(folder / "libraries")
    build(folder / "driver.so", DRIVER_SOURCES, *DRIVER_FLAGS)
    build(folder / "share_client", [str(Path(__file__).with_name("share_client.c"))], "-ldl")
    run, description = gpus.node.path(names.RUN_FOLDER), gpus.node.path(_DESCRIPTION)
    run.mkdir(exist_ok=True)
    (run / "cards").write_bytes(_cards(folder))
    description.write_text(json.dumps(_described(gpus, folder)))
    try:
        yield f"--libraries={folder / 'libraries'}"
    finally:
        description.unlink()
        shutil.rmtree(run)


def _cards(folder: Path) -> bytes:
    make_cards = build(folder / "make_cards", ["make_cards.c", "card.c", "process.c"])
    return subprocess.run([str(make_cards), str(CARD_MIB)], capture_output=True, check=True).stdout


def _described(gpus: GpuCluster, folder: Path) -> dict[str, Any]:
    """Describes the driver and, since the containers' image has no libc, that of the machine."""
    nvml = library_folder() / names.NVML_LIBRARY
    files = {
        DRIVER: folder / "driver.so",
        _NVML: nvml,
        PROGRAM: folder / "share_client",
        _LOADER: _LOADER,
        _SYSTEM: _SYSTEM,
    }
    mounts = [_mount(str(host), inside, "ro") for inside, host in files.items()]
    nodes = [
        {"path": f"/dev/{name}", "hostPath": str(gpus.agent.devices / name)}
        for name in (f"nvidia{CARD.minor}", "nvidiactl", "nvidia-uvm")
    ]
    return {
        "cdiVersion": "0.5.0",
        "kind": names.NVIDIA_GPU,
        "devices": [{"name": CARD.uuid, "containerEdits": {"deviceNodes": nodes}}],
        "containerEdits": {"mounts": [*mounts, _mount(_CARDS, _CARDS, "rw")]},
    }


def _mount(host: str, inside: str, access: str) -> dict[str, Any]:
    return {"hostPath": host, "containerPath": inside, "options": [access, "bind"]}
