"""Finds in the agent's own view the driver's files that a container would get."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from halfcard import names

from .way_in import Mount, NotHeldError, driver_mounts

_MAPS: Final = Path("/proc/self/maps")
_PATH: Final = 5
"""The place of the path in a line of /proc/PID/maps."""


class TrialSubject(NamedTuple):
    """What is tried together.

    Attributes:
        libraries: the folder of the placed isolation libraries.
        driver: the driver's libcuda and, where containers get it, NVML, as (library, file).
    """

    libraries: Path
    driver: tuple[tuple[str, Path], ...]

    @property
    def key(self) -> str:
        """Returns what changes when the libraries or the driver's files change."""
        stats = [(file, file.stat()) for _, file in self.driver]
        parts = [f"{file} {stat.st_ino} {stat.st_size} {stat.st_mtime_ns}" for file, stat in stats]
        return "; ".join([str(self.libraries), *parts])


def trial_subject(libraries: Path, mounts: Sequence[Mount], maps: Path = _MAPS) -> TrialSubject:
    """Returns what is to be tried for containers with these mounts.

    Raises:
        NotHeldError: the agent does not see the driver.
    """
    beside = folder_of(names.NVML_LIBRARY, maps.read_text())
    found = driver_mounts(mounts)
    return TrialSubject(libraries, tuple((library, _file(mount, beside)) for library, mount in found.items()))


def _file(mount: Mount, beside: Path | None) -> Path:
    """Returns the file at its place on the node, at that in containers, or where the agent's own NVML lies."""
    inside = Path(str(mount["containerPath"]))
    places = [Path(str(mount.get("hostPath", inside))), inside, *([beside / inside.name] if beside else [])]
    file = next((place for place in places if place.exists()), None)
    if file is None:
        raise NotHeldError(
            f"the agent's container does not have the driver's {inside.name}, so it cannot try whether shares hold;"
            f" its pod needs {names.DRIVER_CAPABILITIES}=compute,utility, and a restart after an update of the driver"
        )
    return file


def folder_of(library: str, maps: str) -> Path | None:
    """Returns the folder from which a process has loaded a library, by its /proc/PID/maps."""
    stem = library.removesuffix("1")
    paths = (Path(line.split(maxsplit=_PATH)[_PATH]) for line in maps.splitlines() if stem in line)
    return next((path.parent for path in paths if path.name.startswith(stem)), None)
