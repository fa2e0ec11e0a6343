"""The edits of a held container: our libraries in the driver's place, and the driver's where ours look for them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from deviceplugin.inject.cdi import Edits
from deviceplugin.isolation.way_in import NotHeldError, held

LIB: Final = "/usr/lib/x86_64-linux-gnu"
CUDA: Final = f"{LIB}/libcuda.so.570.86.15"
NVML: Final = f"{LIB}/libnvidia-ml.so.570.86.15"
OTHER: Final = f"{LIB}/libcudadebugger.so.570.86.15"
OPTIONS: Final = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
HOOKS: Final = [
    {"hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook", "args": ["nvidia-cdi-hook", *args]}
    for args in (["create-symlinks"], ["enable-cuda-compat", "--host-driver-version=570.86.15"], ["update-ldcache"])
]


def mount(path: str, root: str = "") -> dict[str, Any]:
    return {"hostPath": root + path, "containerPath": path, "options": OPTIONS}


def nvidia(*paths: str, root: str = "") -> Edits:
    """The edits of a card as NVIDIA's toolkit describes them; `root` is where a containerised driver lies."""
    return {"env": ["A=B"], "mounts": [mount(path, root) for path in paths], "hooks": HOOKS}


def from_where(edits: Edits) -> dict[str, str]:
    mounts = {each["containerPath"]: each["hostPath"] for each in edits["mounts"]}
    assert len(mounts) == len(edits["mounts"])
    return mounts


@pytest.mark.parametrize("root", ["", "/run/nvidia/driver"])
def test_the_libraries_lie_in_the_drivers_place_and_the_driver_where_they_look(root: str) -> None:
    found = from_where(held(nvidia(CUDA, NVML, OTHER, root=root), libraries="/libraries", files="/files"))
    assert found == {
        CUDA: "/libraries/libcuda.so.1",
        NVML: "/libraries/libnvidia-ml.so.1",
        OTHER: root + OTHER,
        "/run/halfcard/driver/libcuda.so.1": root + CUDA,
        "/run/halfcard/driver/libnvidia-ml.so.1": root + NVML,
        "/run/halfcard/library": "/libraries",
        "/etc/ld.so.preload": "/libraries/ld.so.preload",
        "/run/halfcard/control": "/files/control",
        "/run/halfcard/account": "/files/account",
    }


def test_a_held_container_can_write_its_account_and_nothing_else_of_ours() -> None:
    edits = held(nvidia(CUDA, NVML), libraries="/libraries", files="/files")
    writable = [each["containerPath"] for each in edits["mounts"] if "ro" not in each["options"]]
    assert writable == ["/run/halfcard/account"]


def test_a_held_container_keeps_its_other_edits_and_does_not_prefer_the_driver_of_its_image() -> None:
    edits = held(nvidia(CUDA), libraries="/libraries", files="/files")
    assert edits["env"] == ["A=B"]
    assert [each["args"][1] for each in edits["hooks"]] == ["create-symlinks", "update-ldcache"]


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ({"deviceNodes": []}, "mounts no libcuda.so.1; run nvidia-ctk cdi generate"),
        ({"mounts": None, "hooks": None}, "mounts no libcuda"),
        ({"mounts": ["libcuda.so.1", {}]}, "mounts no libcuda"),
        (nvidia(OTHER), "mounts no libcuda"),
        (nvidia(CUDA, "/usr/lib/i386-linux-gnu/libcuda.so.570.86.15"), "mounts several libcuda.so.1: .*i386"),
    ],
)
def test_a_container_without_exactly_one_driver_is_not_held(edits: Edits, why: str) -> None:
    with pytest.raises(NotHeldError, match=why):
        held(edits, libraries="/libraries", files="/files")
