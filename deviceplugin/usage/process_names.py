"""Names processes as the accounts of their containers do: by the pid that the container sees, and the start time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from halfcard.isolation.shared_files import process_name

_PROC: Final = Path("/proc")
_START: Final = 22
"""The place of the start time in /proc/PID/stat, as proc(5) counts."""
_AFTER_NAME: Final = 3
"""The place of the first field after the program's name, which may have spaces and parentheses."""


class ProcessNames:
    """Remembers the names of the last call; a pid that is used again within a second would get an earlier one's."""

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._known: Mapping[int, int] = {}

    def of(self, pids: Collection[int]) -> Mapping[int, int]:
        """Returns the names by pid; processes that have ended have none."""
        found = {pid: self._known.get(pid) or self._read(pid) for pid in pids}
        self._known = {pid: name for pid, name in found.items() if name}
        return self._known

    def _read(self, pid: int) -> int:
        try:
            status = (self._proc / str(pid) / "status").read_text(errors="replace")
            stat = (self._proc / str(pid) / "stat").read_text(errors="replace")
        except OSError:
            return 0
        return read_name(status, stat)


def read_name(status: str, stat: str) -> int:
    """Returns the name; 0 where the files do not have it."""
    pids = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
    fields = stat.rpartition(")")[2].split()
    if not pids or len(fields) <= _START - _AFTER_NAME:
        return 0
    return process_name(int(pids[-1]), int(fields[_START - _AFTER_NAME]))
