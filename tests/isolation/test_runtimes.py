"""Programs of NVIDIA's CUDA runtime find the same functions of NVIDIA's drivers as without the library.

Without a card they get no further than these look-ups, about 400, and the error that there is no device.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from .build import build
from .node import Driver
from .nvidia import CUDA_PACKAGES, driver_library
from .test_ways_in import OVERRIDDEN
from .wheels import RUNTIMES, unpacked_wheel

WITH_STATIC: Final = ("12.9.79", "13.0.96", "13.3.29")
"""The wheels of the others have no static library."""

PROGRAMS: Final = [*(f"{version} shared" for version in RUNTIMES), *(f"{version} static" for version in WITH_STATIC)]
NO_DEVICE, DRIVER_TOO_OLD = "devices 100", "devices 35"


class LookUp(NamedTuple):
    """What a runtime asked (name, version and flags) and was answered; `file` has the function."""

    name: str
    version: str
    flags: str
    error: str
    status: str
    function: str
    file: str


class Run(NamedTuple):
    look_ups: list[LookUp]
    said: list[str]


class Runtimes:
    """A node with NVIDIA's drivers in turn, and programs of each runtime there."""

    def __init__(self, folder: Path) -> None:
        self._node = Driver(folder / "halfcard")
        self._node.container()
        self._driver = self._node.folder / "driver" / "libcuda.so.1"
        self.library = self._node.library
        self._before_driver = self._recorder(folder / "bare", self._driver)
        self._before_library = self._recorder(folder / "held", self._node.library)
        self._programs = {name: _program(folder / re.sub(r"\W", "-", name), name) for name in PROGRAMS}

    def use(self, branch: str) -> None:
        self._driver.unlink()
        shutil.copy(driver_library(CUDA_PACKAGES[branch]), self._driver)

    def run(self, program: str, *, held: bool, recorded: bool = True) -> Run:
        recorder = self._before_library if held else self._before_driver
        libcuda = (self._node.library if held else self._driver) if not recorded else recorder
        done = subprocess.run(
            [str(self._programs[program])],
            env={"LD_LIBRARY_PATH": str(libcuda.parent)},
            capture_output=True,
            text=True,
            check=True,
        )
        lines = [line.split() for line in done.stdout.splitlines()]
        look_ups = [LookUp(*words) for words in lines if words[0].startswith("cu")]
        return Run(look_ups, [" ".join(words) for words in lines if not words[0].startswith("cu")])

    def _recorder(self, folder: Path, target: Path) -> Path:
        folder.mkdir()
        (folder / "empty.c").touch()
        stub = build(folder / "stub.so", [str(folder / "empty.c")], f"-Wl,-soname,{target}")
        flags = (f'-DTARGET="{target}"', "-Wl,-soname,libcuda.so.1", "-Wl,--no-as-needed", str(stub))
        return build(folder / "made.so", ["recorder.c"], *flags).rename(folder / "libcuda.so.1")


def _program(made: Path, name: str) -> Path:
    version, kind = name.split()
    pattern = "libcudart.so.*" if kind == "shared" else "libcudart_static.a"
    library = next(unpacked_wheel(RUNTIMES[version]).rglob(pattern))
    return build(made, ["runtime.c", str(library)], f"-Wl,-rpath,{library.parent}")


@pytest.fixture(scope="module")
def runtimes(tmp_path_factory: pytest.TempPathFactory) -> Runtimes:
    return Runtimes(tmp_path_factory.mktemp("runtimes"))


@pytest.fixture(scope="module", params=CUDA_PACKAGES)
def driven(request: pytest.FixtureRequest, runtimes: Runtimes) -> Runtimes:
    runtimes.use(request.param)
    return runtimes


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_runtime_finds_the_same_functions_and_ours_where_they_are_overridden(driven: Runtimes, program: str) -> None:
    bare, held = driven.run(program, held=False), driven.run(program, held=True)
    assert held.said == bare.said
    assert [each[:-1] for each in held.look_ups] == [each[:-1] for each in bare.look_ups]
    found = {each.function: each.file for each in held.look_ups if each.error == "0"}
    assert {name for name, file in found.items() if file == str(driven.library)} == set(OVERRIDDEN) & set(found)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_runtime_says_the_same(driven: Runtimes, program: str) -> None:
    bare, held = (driven.run(program, held=held, recorded=False).said for held in (False, True))
    assert held == bare and held[1] in (NO_DEVICE, DRIVER_TOO_OLD)


def test_a_runtime_finds_some_hundred_functions(runtimes: Runtimes) -> None:
    runtimes.use("newest")
    assert all(len(runtimes.run(program, held=True).look_ups) > 380 for program in PROGRAMS)
