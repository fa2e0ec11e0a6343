"""NVIDIA's own drivers behind the library: every function that can be asked for is found as without it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .node import Driver
from .nvidia import CUDA_PACKAGES, driver_library
from .test_ways_in import OVERRIDDEN

NO_DEVICE = 100
MAY_ALLOCATE = re.compile(r"Alloc|Create|Retain|Import|Launch|Upload")
ALLOCATES_NOTHING = {
    "memory of the host": "cuMemAllocHost cuMemAllocHost_v2 cuMemHostAlloc",
    "memory that another process or library holds": """
        cuImportExternalMemory cuImportExternalSemaphore cuMemImportFromShareableHandle
        cuMemPoolImportFromShareableHandle cuMemPoolImportPointer""",
    "a description, which is small": """
        cuEventCreate cuGraphConditionalHandleCreate cuGraphCreate cuGraphRetainUserObject
        cuGreenCtxStreamCreate cuLinkCreate cuLinkCreate_v2 cuMulticastCreate cuStreamCreate
        cuStreamCreateWithPriority cuSurfObjectCreate cuTexObjectCreate cuTexRefCreate cuUserObjectCreate
        cuUserObjectRetain""",
    "an answer": """
        cuGraphMemAllocNodeGetParams cuMemGetAllocationGranularity cuMemGetAllocationPropertiesFromHandle""",
    "a kernel or a function of the host, which is given its memory": """
        cuLaunch cuLaunchCooperativeKernel cuLaunchCooperativeKernelMultiDevice cuLaunchCooperativeKernel_ptsz
        cuLaunchGrid cuLaunchGridAsync cuLaunchHostFunc cuLaunchHostFunc_ptsz cuLaunchKernel cuLaunchKernelEx
        cuLaunchKernelEx_ptsz cuLaunchKernel_ptsz""",
    "a context for graphics, which shares do not get": """
        cuGLCtxCreate cuGLCtxCreate_v2 cuVDPAUCtxCreate cuVDPAUCtxCreate_v2""",
}
Answers = dict[str, list[str] | None]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return Driver(tmp_path_factory.mktemp("run") / "halfcard")


@pytest.fixture(scope="module", params=CUDA_PACKAGES)
def driver(request: pytest.FixtureRequest, node: Driver) -> Driver:
    place = node.folder / "driver" / "libcuda.so.1"
    place.unlink()
    shutil.copy(driver_library(CUDA_PACKAGES[request.param]), place)
    return node


def functions(library: Path) -> list[str]:
    shown = subprocess.run(["objdump", "-T", str(library)], capture_output=True, text=True, check=True).stdout
    return sorted(set(re.findall(r" (cu[A-Z]\w+)$", shown, re.MULTILINE)))


def names(library: Path) -> list[str]:
    """Returns the names that cuGetProcAddress may know: those of the exported functions, without versions."""
    return sorted({re.sub(r"(_v\d+)?(_ptsz|_ptds)?$", "", name) for name in functions(library)})


def answers(library: Path, asked: list[str]) -> Answers:
    command = [sys.executable, str(Path(__file__).with_name("lookups.py")), str(library)]
    done = subprocess.run(command, input="\n".join(asked), capture_output=True, text=True, check=True)
    found: Answers = json.loads(done.stdout)
    return found


def test_every_function_that_is_asked_for_is_found_as_without_the_library(driver: Driver) -> None:
    bare_driver = driver.folder / "driver" / "libcuda.so.1"
    asked = names(bare_driver)
    bare, ours = answers(bare_driver, asked), answers(driver.library, asked)
    assert len(asked) > 300 and sum(answer is not None for answer in bare.values()) > 10_000
    assert {key: answer and answer[0] for key, answer in ours.items()} == {
        key: one and one[0] for key, one in bare.items()
    }
    from_library = {answer[0] for answer in ours.values() if answer and answer[1] == str(driver.library)}
    assert from_library == {answer[0] for answer in bare.values() if answer} & set(OVERRIDDEN)


def test_the_driver_starts_behind_the_library(driver: Driver) -> None:
    with driver.container().program(with_context=False) as program:
        assert program.error("cuInit", 0) == NO_DEVICE


def test_every_function_that_may_allocate_is_overridden_or_known_not_to(driver: Driver) -> None:
    known = {name for listed in ALLOCATES_NOTHING.values() for name in listed.split()} | set(OVERRIDDEN)
    exported = functions(driver.folder / "driver" / "libcuda.so.1")
    assert [name for name in exported if MAY_ALLOCATE.search(name) and name not in known] == []
