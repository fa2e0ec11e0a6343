"""NVML shows a container its share and its own processes, and everything else as the driver answers it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pynvml  # type: ignore[import-untyped]
import pytest

from halfcard.isolation.shared_files import NO_LIMIT, CardControl, write_control
from tests.nvml.stand_in import VARIABLE, StandIn, StandInCard, StandInProcess

from .build import PRODUCT, build
from .node import CONTEXT_MIB, LIMIT_MIB, MIB, Driver, share
from .nvidia import NVML_PACKAGES, driver_library
from .test_ways_in import dynamic_symbols, glibc_versions, needed

OVERRIDDEN: Final = re.findall(
    r"^(?:EXPORT nvmlReturn_t |LIST\(|NONE\(|HIDDEN\()(\w+)", (PRODUCT / "nvml.c").read_text(), re.MULTILINE
)
NVML: Final = Path(__file__).parents[1] / "nvml" / "library.c"
NEIGHBOUR: Final = 4242
TOTAL_MIB: Final = 16000
SHOWS_PROCESSES: Final = re.compile(r"^nvmlDeviceGet.*(Process|Pids|Sessions|AccountingStats)")
SHOWS_NONE_OF_A_SHARE: Final = {
    "of virtual machines": """
        nvmlDeviceGetVgpuProcessUtilization nvmlDeviceGetVgpuProcessesUtilizationInfo""",
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    made = Driver(tmp_path_factory.mktemp("run") / "halfcard")
    flags = ("-Wl,--allow-multiple-definition", "-Wl,-soname,libnvidia-ml.so.1")  # the first definition counts
    library = build(made.folder / "nvml.so", ["again.c", str(NVML)], *flags)
    library.rename(made.folder / "driver" / "libnvidia-ml.so.1")
    return made


def card(device: int) -> StandInCard:
    """A card of the stand-in driver, as the other stand-in shows it: with a neighbour's process."""
    digits = bytes([ord("A") + device]).hex() * 16
    uuid = "-".join(digits[at:end] for at, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)))
    neighbour = StandInProcess(NEIGHBOUR, 7000, 60)
    return StandInCard(
        f"GPU-{uuid}", device, memory_mib=TOTAL_MIB, reserved_mib=300, used_mib=7000, processes=(neighbour,)
    )


def seen(driver: Driver, tmp_path: Path) -> list[dict[str, Any]]:
    stand_in = StandIn(tmp_path, [card(0), card(1)])
    environment = {VARIABLE: stand_in.environment[VARIABLE], "LD_LIBRARY_PATH": str(driver.library.parent)}
    command = [sys.executable, str(Path(__file__).with_name("nvml_client.py"))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_memory_is_that_of_the_share_in_both_versions(driver: Driver, tmp_path: Path) -> None:
    container, used = driver.container(), 300 + CONTEXT_MIB
    with container.program() as program:
        program.allocate(300)
        first, other = seen(driver, tmp_path)
    expected = [size * MIB for size in (LIMIT_MIB, used, LIMIT_MIB - used, 0)]
    assert first["memory"] == first["memory_v2"] == expected
    assert other["memory"] == [LIMIT_MIB * MIB, 0, LIMIT_MIB * MIB, 0]


def test_without_a_limit_free_memory_is_what_the_card_has_left(driver: Driver, tmp_path: Path) -> None:
    driver.container(CardControl(share(0).uuid, NO_LIMIT, context=0))
    first, _ = seen(driver, tmp_path)
    assert first["memory"] == [size * MIB for size in (TOTAL_MIB, 0, TOTAL_MIB - 7300, 0)]


def test_use_beyond_a_lowered_limit_leaves_nothing_free(driver: Driver, tmp_path: Path) -> None:
    with driver.container().program() as program:
        program.allocate(500)
        lower_limit(driver, 200)
        assert seen(driver, tmp_path)[0]["memory"] == [200 * MIB, 200 * MIB, 0, 0]


def lower_limit(driver: Driver, mib: int) -> None:
    with (driver.folder / "control").open("r+b") as file:
        file.write(write_control((share(0, mib),)))


def test_only_the_containers_own_processes_are_listed(driver: Driver, tmp_path: Path) -> None:
    container = driver.container()
    with container.program() as one, container.program() as other:
        one.allocate(100)
        first, second = seen(driver, tmp_path)
        expected = [[one.process.pid, (100 + CONTEXT_MIB) * MIB], [other.process.pid, CONTEXT_MIB * MIB]]
    assert [sorted(first[kind]) for kind in ("first list", "v2", "Compute")] == [sorted(expected)] * 3
    assert [second[kind] for kind in ("first list", "v2", "Compute")] == [[]] * 3
    assert first["Graphics"] == first["MPSCompute"] == []


def test_a_process_that_ended_is_not_listed(driver: Driver, tmp_path: Path) -> None:
    container = driver.container()
    with container.program():
        pass
    assert [row.bytes for row in container.cards[0].rows.values()] == [CONTEXT_MIB * MIB]
    assert seen(driver, tmp_path)[0]["Compute"] == []


def test_the_use_of_neighbours_processes_is_hidden(driver: Driver, tmp_path: Path) -> None:
    driver.container()
    assert seen(driver, tmp_path)[0]["utilization"] == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_other_functions_are_the_drivers(driver: Driver, tmp_path: Path) -> None:
    driver.container()
    assert seen(driver, tmp_path)[0]["name"] == "Tesla T4"


@pytest.mark.parametrize("missing", ["account", "control"])
def test_without_a_file_nothing_of_the_card_is_shown(driver: Driver, tmp_path: Path, missing: str) -> None:
    driver.container()
    os.truncate(driver.folder / missing, 64)
    for each in seen(driver, tmp_path):
        assert {answer for key, answer in each.items() if key not in {"name", "utilization"}} == {
            pynvml.NVML_ERROR_NO_PERMISSION
        }


def test_a_card_that_the_control_file_does_not_name_is_not_shown(driver: Driver, tmp_path: Path) -> None:
    driver.container(share(0))
    first, other = seen(driver, tmp_path)
    assert first["Compute"] == [] and other["Compute"] == other["memory"] == pynvml.NVML_ERROR_NO_PERMISSION


# --- the file itself


def nvml(driver: Driver) -> Path:
    return driver.library.with_name("libnvidia-ml.so.1")


def test_the_library_exports_what_it_overrides_and_nothing_else(driver: Driver) -> None:
    exported = [line.split()[-1] for line in dynamic_symbols(nvml(driver)) if "*UND*" not in line]
    assert sorted(exported) == sorted(OVERRIDDEN)


def test_the_library_loads_on_the_oldest_glibc_and_needs_the_driver_by_its_whole_path(driver: Driver) -> None:
    assert max(glibc_versions(nvml(driver))) <= (2, 17)
    assert needed(nvml(driver)) == [f"{driver.folder}/driver/libnvidia-ml.so.1", "libc.so.6"]


@pytest.mark.parametrize("branch", NVML_PACKAGES)
def test_every_function_that_shows_processes_is_overridden_or_known_not_to(branch: str) -> None:
    known = {name for listed in SHOWS_NONE_OF_A_SHARE.values() for name in listed.split()} | set(OVERRIDDEN)
    library = driver_library(NVML_PACKAGES[branch], "libnvidia-ml.so")
    exported = [line.split()[-1] for line in dynamic_symbols(library) if "*UND*" not in line]
    assert len(exported) > 200
    assert [name for name in exported if SHOWS_PROCESSES.search(name) and name not in known] == []
