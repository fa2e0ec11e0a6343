"""The library for arm64, by Debian's cross compiler and an emulator: `make test-isolation-arm64`.

The emulator shows no error of memory order, because it runs on this machine's processor, and its /proc gives the
threads of a process different start times; so programs have one thread here.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from .build import Change, Machine, build
from .node import LIMIT_MIB, Driver
from .test_account_laws import LAWS, SMALL
from .test_ways_in import OLDEST_GLIBC, glibc_versions

_LIBC: Final = "/usr/aarch64-linux-gnu"
ARM64: Final = Machine(("aarch64-linux-gnu-gcc",), ("qemu-aarch64", "-L", _LIBC))
SCRIPTS: Final = 2000


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return Driver(tmp_path_factory.mktemp("run") / "halfcard", machine=ARM64)


def emulated(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*ARM64.runner, str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["libcuda.so.1", "libnvidia-ml.so.1"])
def test_the_libraries_load_on_the_oldest_glibc(driver: Driver, name: str) -> None:
    assert max(glibc_versions(driver.library.with_name(name), "aarch64-linux-gnu-objdump")) <= OLDEST_GLIBC


def test_no_random_order_breaks_a_law_of_the_account(tmp_path: Path) -> None:
    explore = build(tmp_path / "explore", ["model.c", "explore.c"], changes=SMALL, machine=ARM64)
    assert LAWS[emulated(explore, "1", str(SCRIPTS)).returncode] == "kept"


def test_a_broken_account_is_found_there_too(tmp_path: Path) -> None:
    unlimited = Change("account.c", "bytes) <= LOAD", "bytes) < 2 * LOAD")
    explore = build(tmp_path / "explore", ["model.c", "explore.c"], changes=[*SMALL, unlimited], machine=ARM64)
    assert LAWS[emulated(explore, "1", str(SCRIPTS)).returncode] == "over the limit"


def test_a_program_is_held(driver: Driver, tmp_path: Path) -> None:
    built = build(tmp_path / "nothing.so", ["nothing.c"], "-Wl,-soname,libcuda.so.1", machine=ARM64)
    built.rename(driver.folder / "driver" / "libcuda.so.1")
    driver.container()
    takes = build(tmp_path / "takes", ["takes.c"], machine=ARM64)
    done = emulated(takes, str(driver.library), str(2 * LIMIT_MIB), str(LIMIT_MIB // 2))
    assert (done.returncode, done.stdout) == (0, "0 2 0\n")
