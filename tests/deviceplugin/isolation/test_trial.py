"""The trial finds out whether the libraries hold a program over the node's driver, whatever that does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from deviceplugin.isolation.driver_files import TrialSubject, folder_of
from deviceplugin.isolation.trial import Trial
from halfcard import names
from tests.isolation.build import build
from tests.isolation.node import CARD_MIB, Driver
from tests.nvml.build import library_folder
from tests.nvml.stand_in import StandIn, StandInCard

CARD: Final = "GPU-41414141-4141-4141-4141-414141414141"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return Driver(tmp_path_factory.mktemp("node"))


@pytest.fixture
def subject(node: Driver, monkeypatch: pytest.MonkeyPatch) -> TrialSubject:
    """Both libraries, over stand-ins for NVIDIA's."""
    node.container()
    driver = node.folder / "libcuda.so.570"
    if not driver.exists():
        shutil.copy(node.folder / "driver" / names.CUDA_LIBRARY, driver)
    for name, value in StandIn(node.folder, [StandInCard(CARD)]).environment.items():
        monkeypatch.setenv(name, value)
    nvml = library_folder() / names.NVML_LIBRARY
    return TrialSubject(node.library.parent, ((names.CUDA_LIBRARY, driver), (names.NVML_LIBRARY, nvml)))


def with_driver(subject: TrialSubject, folder: Path, initialise: str) -> TrialSubject:
    """Replaces the driver by one whose cuInit does this."""
    source = folder / "driver.c"
    source.write_text(
        f"#include <stdlib.h>\n#include <unistd.h>\nint cuInit(unsigned flags) {{ (void)flags; {initialise} }}\n"
    )
    driver = build(folder / "libcuda.so", [str(source)], "-Wl,-soname,libcuda.so.1")
    return subject._replace(driver=((names.CUDA_LIBRARY, driver),))


async def test_libraries_that_hold_pass(node: Driver, subject: TrialSubject) -> None:
    assert await Trial(node.folder)(subject, CARD) == ""


async def test_libraries_that_let_everything_pass_fail(node: Driver, subject: TrialSubject, tmp_path: Path) -> None:
    for library, file in subject.driver:
        shutil.copy(file, tmp_path / library)
    loose = subject._replace(libraries=tmp_path)
    assert await Trial(node.folder)(loose, CARD) == (
        f"cuDeviceTotalMem shows {CARD_MIB} MiB instead of the share of 64 MiB"
    )
    only_nvml = loose._replace(driver=loose.driver[1:])
    assert "NVML shows 15109 MiB" in await Trial(node.folder)(only_nvml, CARD)


GENEROUS: Final = """
#include <stddef.h>
#include <string.h>
int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int *count) { return *count = 1, 0; }
int cuDeviceGetUuid(char uuid[16], int device) { return memset(uuid, 'A' + device, 16), 0; }
int cuDeviceTotalMem_v2(size_t *total, int device) { return *total = 64UL << 20, device; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = NULL, device; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device; }
int cuCtxSetCurrent(void *context) { return context != NULL; }
int cuMemAlloc_v2(size_t *made, size_t size) { return *made = size, 0; }
"""


async def test_a_library_that_shows_the_share_and_does_not_hold_it_fails(
    node: Driver, subject: TrialSubject, tmp_path: Path
) -> None:
    (tmp_path / "generous.c").write_text(GENEROUS)
    build(tmp_path / "cuda.so", [str(tmp_path / "generous.c")])
    (tmp_path / "cuda.so").rename(tmp_path / names.CUDA_LIBRARY)
    generous = subject._replace(libraries=tmp_path, driver=subject.driver[:1])
    assert await Trial(node.folder)(generous, CARD) == (
        "an allocation over the share, by cuMemAlloc, was answered 0 instead of OUT_OF_MEMORY"
    )


async def test_a_card_that_cuda_does_not_list_fails(node: Driver, subject: TrialSubject) -> None:
    assert "CUDA does not list the card" in await Trial(node.folder)(subject, CARD.replace("41", "49"))


@pytest.mark.parametrize(
    ("initialise", "why"),
    [
        ("return 100;", "cuInit was answered 100"),
        ("abort();", "was ended by signal 6"),
        ("for (;;) pause();", "did not answer a trial within 2 s"),
    ],
)
async def test_a_driver_that_fails_crashes_or_hangs_is_found(
    node: Driver, subject: TrialSubject, tmp_path: Path, initialise: str, why: str
) -> None:
    trial = Trial(node.folder, within_s=2.0)
    assert why in await trial(with_driver(subject, tmp_path, initialise), CARD)
    assert await Trial(node.folder)(subject, CARD) == ""


async def test_a_driver_that_no_program_can_load_is_named(node: Driver, subject: TrialSubject, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("no library")
    broken = subject._replace(driver=((names.CUDA_LIBRARY, tmp_path / "empty"),))
    assert "libcuda.so.1 cannot be loaded" in await Trial(node.folder)(broken, CARD)


def test_a_loaded_library_is_found_by_the_maps_of_a_process() -> None:
    without = "7f02-7f03 rw-p 0 0:0 0\n"
    maps = f"{without}7f00-7f01 r-xp 00000000 08:01 17    /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.570.86.15\n"
    assert folder_of(names.NVML_LIBRARY, maps) == Path("/usr/lib/x86_64-linux-gnu")
    assert folder_of(names.NVML_LIBRARY, without) is None
