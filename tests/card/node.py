"""A machine with a card: the libraries, built for it, containers with a share, and programs in them.

A container is a folder, in which its programs run: it has their account, and the driver where the library looks for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pynvml  # type: ignore[import-untyped]  # it has no types

from halfcard.isolation.shared_files import new_account, write_control

from .facts import control_of, last_answer, library_path

LIBRARIES: Final = ("libcuda.so.1", "libnvidia-ml.so.1")
HERE: Final = Path(__file__).parent
ISOLATION: Final = HERE.parents[1] / "isolation"
PATIENCE_S: Final = 900


class RealCard(NamedTuple):
    uuid: str
    name: str
    driver: str
    memory_mib: int


def found_card() -> RealCard | str:
    """Returns the first card, or why there is none."""
    try:
        pynvml.nvmlInit()
        card = pynvml.nvmlDeviceGetHandleByIndex(0)
    except pynvml.NVMLError as error:
        return str(error)
    memory = pynvml.nvmlDeviceGetMemoryInfo(card).total
    driver = pynvml.nvmlSystemGetDriverVersion()
    return RealCard(pynvml.nvmlDeviceGetUUID(card), pynvml.nvmlDeviceGetName(card), driver, memory >> 20)


class CardNode:
    def __init__(self, folder: Path, card: RealCard) -> None:
        self._folder = folder
        self.card = card
        self.context_mib = 0
        """What a context was seen to need, which the agent would write."""
        listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
        self._drivers = {name: library_path(listed, name) for name in LIBRARIES}
        self._python = self._environment()
        make = ["make", "-s", "-C", str(ISOLATION), "RUN_FOLDER=.", f"OUT={folder}/library"]
        subprocess.run(make, check=True)

    def _environment(self) -> Path:
        python = self._folder / "venv" / "bin" / "python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(self._folder / "venv")], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "-r", str(HERE / "requirements.lock")]
        subprocess.run(pip, check=True)
        return python

    def container(self, name: str, memory_mib: int | None = None, cores_pct: int | None = None) -> Container:
        """Makes a container with a share of the card."""
        folder = self._folder / "containers" / name
        (folder / "driver").mkdir(parents=True, exist_ok=True)
        for library, path in self._drivers.items():
            place = folder / "driver" / library
            place.unlink(missing_ok=True)
            place.symlink_to(path)
        (folder / "account").write_bytes(new_account())
        control = control_of(self.card.uuid, memory_mib, cores_pct, self.context_mib)
        (folder / "control").write_bytes(write_control([control]))
        return Container(folder, self._python, {"LD_LIBRARY_PATH": str(self._folder / "library")})

    def bare(self) -> Container:
        """Returns a container that nothing holds."""
        folder = self._folder / "containers" / "bare"
        folder.mkdir(parents=True, exist_ok=True)
        return Container(folder, self._python, {})


class Container(NamedTuple):
    folder: Path
    python: Path
    variables: Mapping[str, str]

    @contextmanager
    def start(self, program: str, *arguments: object, **variables: str) -> Iterator[subprocess.Popen[str]]:
        command = [str(self.python), str(HERE / "programs" / f"{program}.py"), *map(str, arguments)]
        environment = {**os.environ, **self.variables, **variables}
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=self.folder, env=environment, stdin=pipe, stdout=pipe, text=True) as started:
            try:
                yield started
            finally:
                started.kill()

    def run(self, program: str, *arguments: object, **variables: str) -> Mapping[str, Any]:
        with self.start(program, *arguments, **variables) as started:
            return last_answer(started.communicate(timeout=PATIENCE_S)[0])


def used_mib() -> int:
    """Returns what the whole card uses."""
    return int(pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0)).used) >> 20


def utilisation(since_us: int) -> dict[int, int]:
    """Returns the per cents of each process that NVML shows since a time, by its pid on this machine."""
    card = pynvml.nvmlDeviceGetHandleByIndex(0)
    try:
        samples = pynvml.nvmlDeviceGetProcessUtilization(card, since_us)
    except pynvml.NVMLError_NotFound:
        return {}
    return {sample.pid: sample.smUtil for sample in samples}
