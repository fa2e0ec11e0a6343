"""Where /etc/ld.so.preload names the library for it, a program that opens another driver gets ours.

The programs run with an /etc of their own, which is empty but for that file. This machine's is never touched.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from .build import TESTS, build
from .node import OUT_OF_MEMORY, Driver
from .test_ways_in import TOO_MUCH, dynamic_symbols, needed

NAMESPACE: Final = ("unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)))
WITH_PRELOAD: Final = 'mount -t tmpfs tmpfs /etc && echo "$0" > /etc/ld.so.preload && exec "$@"'
SYMBOLS: Final = {"libcuda.so.1": "cuInit", "libnvidia-ml.so.1": "nvmlDeviceGetMemoryInfo"}
MORE_RIGHTS: Final = ("setpriv", "--ruid", "65534")
"""Its real user differs from its effective one, as that of a setuid program."""


def with_preload(preload: str, *program: str) -> list[str]:
    """Returns the command that runs a program where /etc/ld.so.preload names this library."""
    return [*NAMESPACE, "sh", "-c", WITH_PRELOAD, preload, *program]


class Image:
    """A container whose image has a driver of its own, in `compat`, which it puts first."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.compat = driver.folder / "compat"
        self.compat.mkdir()
        for name, symbol in SYMBOLS.items():
            source = driver.folder / f"{symbol}.c"
            source.write_text(f"int {symbol}(void) {{ return 0; }}")
            build(driver.folder / f"{symbol}.so", [str(source)], f"-Wl,-soname,{name}").rename(self.compat / name)
        (driver.folder / "driver" / "libnvidia-ml.so.1").symlink_to(self.compat / "libnvidia-ml.so.1")
        self.program = build(driver.folder / "opens", ["opens.c"], "-ldl")

    @property
    def preload(self) -> Path:
        return self.driver.library.with_name("halfcard-preload.so")

    def ours(self, name: str) -> str:
        return f"0 {self.driver.library.with_name(name)}"

    def opens(
        self,
        way: str,
        file: str,
        symbol: str,
        *,
        bare: bool = False,
        rights: tuple[str, ...] = (),
        preload: bool = True,
    ) -> str:
        variables = () if bare else (f"LD_LIBRARY_PATH={self.compat}",)
        program = ("env", "-i", *variables, *rights, str(self.program), way, file, symbol)
        command = with_preload(str(self.preload) if preload else "", *program)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    made = Image(Driver(tmp_path_factory.mktemp("run") / "halfcard"))
    made.driver.container()
    return made


def test_without_it_the_images_own_driver_is_opened(image: Image) -> None:
    assert image.opens("dlopen", "libcuda.so.1", "cuInit", preload=False) == f"0 {image.compat}/libcuda.so.1"


@pytest.mark.parametrize("way", ["dlopen", "deepbind", "dlmopen"])
@pytest.mark.parametrize("name", SYMBOLS)
def test_ours_is_opened_though_another_driver_comes_first(image: Image, name: str, way: str) -> None:
    assert image.opens(way, name, SYMBOLS[name]) == image.ours(name)


@pytest.mark.parametrize("file", ["libcuda.so", "libcuda.so.535.261.03", "{compat}/libcuda.so.1", "./libcuda.so.1"])
def test_ours_is_opened_by_any_name_or_path_of_the_driver(image: Image, file: str) -> None:
    assert image.opens("dlopen", file.format(compat=image.compat), "cuInit") == image.ours("libcuda.so.1")


def test_ours_is_opened_without_variables(image: Image) -> None:
    assert image.opens("dlopen", "libcuda.so.1", "cuInit", bare=True) == image.ours("libcuda.so.1")


def test_ours_is_opened_by_a_program_with_more_rights_than_its_user(image: Image) -> None:
    shown = image.opens("dlopen", "libcuda.so.1", "cuInit", rights=MORE_RIGHTS)
    assert shown == f"1 {image.driver.library}"


@pytest.mark.parametrize("name", ["libcudart.so.12", "libcuda.soft", "mylibcuda.so.1"])
def test_another_library_is_opened_as_asked(image: Image, tmp_path: Path, name: str) -> None:
    (tmp_path / "other.c").write_text("int other(void) { return 0; }")
    other = build(tmp_path / "other.so", [str(tmp_path / "other.c")]).rename(tmp_path / name)
    assert image.opens("dlopen", str(other), "other") == f"0 {other}"


def test_a_plug_in_finds_libraries_in_its_own_runpath(image: Image, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "other.c").write_text("int other(void) { return 0; }")
    private = build(tmp_path / "other.so", [str(tmp_path / "other.c")]).rename(tmp_path / "private/libprivate.so")
    plugin = build(tmp_path / "plugin.so", [str(TESTS / "plugin.c")], f"-Wl,--enable-new-dtags,-rpath,{private.parent}")
    assert image.opens(str(plugin), "libprivate.so", "other") == f"0 {private}"


def test_a_program_that_opens_the_driver_through_it_is_limited(image: Image) -> None:
    with image.driver.container().program("libcuda.so.1", bare=True, preloaded=image.preload) as program:
        assert program.error("cuMemAlloc_v2", None, TOO_MUCH) == OUT_OF_MEMORY


def test_it_defines_two_functions_and_needs_one_of_libdl_in_any_version(image: Image) -> None:
    symbols = dynamic_symbols(image.preload)
    assert sorted((line.split()[-1], "*UND*" in line) for line in symbols) == [
        ("dlmopen", False),
        ("dlopen", False),
        ("dlsym", True),
    ]
    assert not any("GLIBC" in line for line in symbols)
    assert needed(image.preload) == ["libdl.so.2"]
