"""The library holds programs of the oldest glibc that can be had, and programs of musl, which have no CUDA, run on.

glibc 2.17 cannot be had from Debian any more: tests of the files check that nothing newer is imported.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pytest

from .build import build
from .debian import Package, unpacked
from .node import LIMIT_MIB, Driver
from .test_preload import with_preload

GLIBC_2_31: Final = Package("libc6", ("bullseye",))
MUSL: Final = Package("musl")
TOO_MUCH: Final = str(2 * LIMIT_MIB)
FITS: Final = str(LIMIT_MIB // 2)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    made = Driver(tmp_path_factory.mktemp("run") / "halfcard")
    built = build(
        made.folder / "nothing.so", ["nothing.c"], "-O2", "-Wl,-soname,libcuda.so.1"
    )  # it imports nothing new
    built.rename(made.folder / "driver" / "libcuda.so.1")
    made.container()
    return made


class OldLibc:
    """Programs that are linked with another libc, and run with its loader."""

    def __init__(self, folder: Path, package: Package, loader: str, libraries: tuple[str, ...]) -> None:
        self._folder = folder
        self.files = unpacked(package)
        self._loader = next(self.files.rglob(loader))
        self._libraries = [str(next(self.files.rglob(name))) for name in libraries]

    @property
    def folder(self) -> Path:
        return self._loader.parent

    def program(self, source: str) -> Path:
        flags = ("-fno-stack-protector", "-nodefaultlibs", f"-Wl,--dynamic-linker={self._loader}")
        where = (f"-Wl,-rpath,{self.folder}", f"-Wl,-rpath-link,{self.folder}")
        return build(self._folder / source.removesuffix(".c"), [source, *self._libraries], *flags, *where)


@pytest.fixture(scope="module")
def glibc(tmp_path_factory: pytest.TempPathFactory) -> OldLibc:
    folder = tmp_path_factory.mktemp("glibc")
    return OldLibc(folder, GLIBC_2_31, "ld-linux-x86-64.so.2", ("libdl.so.2", "libc.so.6"))


def said(*command: str, **variables: str) -> str:
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_program_of_glibc_2_31_is_held(driver: Driver, glibc: OldLibc) -> None:
    takes = str(glibc.program("takes.c"))
    assert said(takes, "libcuda.so.1", TOO_MUCH, FITS, LD_LIBRARY_PATH=str(driver.library.parent)) == "0 2 0"


def test_a_preloaded_library_opens_ours_in_a_program_of_glibc_2_31(driver: Driver, glibc: OldLibc) -> None:
    opens = str(glibc.program("opens.c"))
    preload = str(driver.library.with_name("halfcard-preload.so"))
    assert said(opens, "dlopen", "libcuda.so.535", "cuInit", LD_PRELOAD=preload) == f"0 {driver.library}"


@pytest.mark.parametrize("name", ["libcuda.so.1", "halfcard-preload.so"])
def test_a_program_of_musl_runs_on(driver: Driver, tmp_path: Path, name: str) -> None:
    loader = "ld-musl-x86_64.so.1"
    runs = str(OldLibc(tmp_path, MUSL, loader, (loader,)).program("runs.c"))
    done = subprocess.run(
        with_preload(str(driver.library.with_name(name)), "env", "-i", runs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ran\n")
