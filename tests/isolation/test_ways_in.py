"""A program reaches the driver through the library by every way of loading it and of finding a function."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from .build import build
from .node import CONTEXT_MIB, MIB, OUT_OF_MEMORY, Container, Driver

OLDEST_GLIBC: Final = (2, 17)
OVERRIDDEN: Final = re.findall(
    r"^(?:ALLOCATE|RELEASE|LAUNCH|OTHER)\((\w+),",
    (Path(__file__).parents[2] / "isolation/overrides.h").read_text(),
    re.MULTILINE,
)
TOO_MUCH: Final = 2000 * MIB


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return Driver(tmp_path_factory.mktemp("run") / "halfcard")


@pytest.fixture(scope="module")
def old_driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return Driver(tmp_path_factory.mktemp("old") / "halfcard", "-DOLD")


@pytest.fixture
def container(driver: Driver) -> Container:
    return driver.container()


@pytest.mark.parametrize("way", ["libcuda.so.1", "deepbind", "dlmopen"])
def test_a_program_that_loads_cuda_in_this_way_is_limited(container: Container, way: str) -> None:
    with container.program(way) as program:
        assert program.error("cuMemAlloc_v2", None, TOO_MUCH) == OUT_OF_MEMORY


def test_a_program_without_variables_is_limited(driver: Driver) -> None:
    with driver.container().program(str(driver.library), bare=True) as program:
        assert program.error("cuMemAlloc_v2", None, TOO_MUCH) == OUT_OF_MEMORY


def test_two_copies_in_one_process_share_its_row(container: Container) -> None:
    with container.program() as program:
        program.allocate(200)
        program.call("!load dlmopen")
        program.get("cuInit", 0)
        program.get("cuCtxSetCurrent", program.get("cuCtxCreate_v2", None, 0, 0))
        program.allocate(300)
        assert [row.bytes // MIB for row in container.cards[0].rows.values()] == [500 + 2 * CONTEXT_MIB]


@pytest.mark.parametrize("asked", ["@", "@@"])
@pytest.mark.parametrize(
    ("name", "version", "found"),
    [
        ("cuMemAlloc", 12080, "cuMemAlloc_v2"),
        ("cuMemAlloc", 2000, "cuMemAlloc"),
        ("cuMemCreate", 12080, "cuMemCreate"),
        ("cuGetProcAddress", 11030, "cuGetProcAddress_v2"),
    ],
)
def test_an_overridden_function_that_is_asked_for_is_ours(
    container: Container, asked: str, name: str, version: int, found: str
) -> None:
    with container.program() as program:
        assert program.get(f"={asked}{name} {version}") == program.get(f"={found}")


def test_a_function_that_is_asked_for_is_ours_though_a_preloaded_library_has_one(
    driver: Driver, tmp_path: Path
) -> None:
    (tmp_path / "other.c").write_text("int cuMemAlloc_v2(void) { return 42; }")
    other = build(tmp_path / "other.so", [str(tmp_path / "other.c")])
    with driver.container().program(preloaded=other) as program:
        assert program.error("@cuMemAlloc 12080", None, TOO_MUCH) == OUT_OF_MEMORY


def test_another_function_that_is_asked_for_is_the_drivers(container: Container) -> None:
    with container.program() as program:
        theirs = program.get("=@cuDriverGetVersion 12080")
        assert theirs == program.get("=cuDriverGetVersion")
        assert program.get("@cuDriverGetVersion 12080", None) & 0xFFFFFFFF == 12080


def test_a_function_that_does_not_exist_is_not_found(container: Container) -> None:
    with container.program() as program:
        assert program.call("cuGetProcAddress", b"cuNothing\0", None, 12080, 0) == [500, 0]


def test_what_an_old_driver_lacks_is_emulated_or_not_supported(old_driver: Driver) -> None:
    with old_driver.container().program() as program:
        assert program.get("=@@cuMemAlloc 12080") == program.get("=cuMemAlloc_v2")
        assert program.error("cuCtxCreate_v4", None, 0, 0, 0) == 801
        assert program.error("cuMemAlloc_v2", None, TOO_MUCH) == OUT_OF_MEMORY


def test_a_function_that_fails_for_want_of_a_driver_function_takes_nothing(old_driver: Driver) -> None:
    container = old_driver.container()
    with container.program() as program:
        assert program.error("cuCtxCreate_v4", None, 0, 0, 0) == 801
        assert container.used_mib() == CONTEXT_MIB


# --- the file itself


def dynamic_symbols(library: Path, objdump: str = "objdump") -> list[str]:
    shown = subprocess.run([objdump, "-T", str(library)], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if re.match(r"[0-9a-f]{16} ", line)]


def test_the_library_exports_what_it_overrides_and_nothing_else(driver: Driver) -> None:
    exported = [line.split()[-1] for line in dynamic_symbols(driver.library) if "*UND*" not in line]
    assert sorted(exported) == sorted(OVERRIDDEN)


def glibc_versions(library: Path, objdump: str = "objdump") -> set[tuple[int, ...]]:
    imported = [line for line in dynamic_symbols(library, objdump) if "*UND*" in line]
    found = re.findall(r"GLIBC_([\d.]+)", "\n".join(imported))
    return {tuple(map(int, version.split("."))) for version in found}


def needed(library: Path) -> list[str]:
    shown = subprocess.run(["objdump", "-p", str(library)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"NEEDED +(\S+)", shown)


def test_the_library_loads_on_the_oldest_glibc(driver: Driver) -> None:
    assert max(glibc_versions(driver.library)) <= OLDEST_GLIBC


def test_the_library_needs_libc_and_the_driver_by_its_whole_path(driver: Driver) -> None:
    assert needed(driver.library) == [f"{driver.folder}/driver/libcuda.so.1", "libc.so.6"]
