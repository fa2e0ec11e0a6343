"""The files of a development cluster: where it is, how far its start is, and whether it runs.

Law: it runs as long as its process holds the lock; the other files only hold the last state that it wrote.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ..errors import NotReadyError
from ..waiting import wait_until

READY: Final = "ready"
FAILED: Final = "failed"

_PID_CHARS: Final = 10  # those of the largest process id, and more


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the cluster."""

    name: str
    pid: int
    health_url: str
    log: str


@dataclass(frozen=True, slots=True)
class DevState:
    """How far a start is: `phase` is the current step, READY, or FAILED with the reason in `why`.

    Attributes:
        no_node: why no node runs pods; empty if one does, or if none was wanted.
    """

    phase: str
    why: str = ""
    server: str = ""
    parts: tuple[Program, ...] = ()
    no_node: str = ""

    @staticmethod
    def from_json(raw: dict[str, Any]) -> DevState:
        return DevState(**{**raw, "parts": tuple(Program(**part) for part in raw["parts"])})


class FolderTakenError(Exception):
    """The folder is used for something else."""


def _try_lock(handle: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class DevFolder:
    path: Path

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def programs(self) -> Path:
        return self.path / "bin"

    @property
    def log(self) -> Path:
        return self.path / "dev.log"

    @property
    def cluster(self) -> Path:
        """The cluster's own files: data, keys, logs."""
        return self.path / "cluster"

    @property
    def authority(self) -> Path:
        return self.path / "ca.crt"

    @property
    def borrowed(self) -> Path:
        """The file about an existing cluster in use: its context, and the mark of the objects that we created there."""
        return self.path / "borrowed.json"

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    @property
    def _state(self) -> Path:
        return self.path / "state.json"

    @contextmanager
    def claimed(self) -> Iterator[int]:
        """Yields the lock as a file descriptor; a process that inherits it keeps the lock."""
        if self.path.exists() and any(self.path.iterdir()) and not self._lock.exists():
            raise FolderTakenError(f"{self.path} holds other files: name an empty or a new folder with --dir")
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            wait_until(
                lambda: _try_lock(handle), what=f"the lock of {self.path}: another cluster lives there", seconds=2
            )
            if not self._is_lock(handle):
                raise NotReadyError(f"{self.path} was removed at the same moment: try again")
            yield handle
        finally:
            os.close(handle)

    def _is_lock(self, handle: int) -> bool:
        """Returns whether the file still exists: another process may have removed it between our open and our lock."""
        return self._lock.exists() and os.path.samestat(os.fstat(handle), self._lock.stat())

    def note(self, handle: int, pid: int) -> None:
        """Writes the process id of the holder into the lock, wide enough to replace any earlier one."""
        os.pwrite(handle, f"{pid:<{_PID_CHARS}}\n".encode(), 0)

    def pid(self) -> int:
        return int(self._lock.read_text())

    def exists(self) -> bool:
        return self._lock.exists()

    def is_running(self) -> bool:
        if not self._lock.exists():
            return False
        with self._lock.open() as lock:
            return not _try_lock(lock.fileno(), fcntl.LOCK_SH)

    def clear(self) -> None:
        """Removes only what a cluster writes: the folder may contain other files."""
        for folder in (self.cluster, self.programs):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (self.kubeconfig, self.authority, self.log, self.borrowed, self._state):
            file.unlink(missing_ok=True)

    def remove(self) -> None:
        """Removes the cluster's files and the lock; call it while claimed."""
        self.clear()
        self._lock.unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()

    def context(self) -> str:
        """Returns the context of the existing cluster in use; empty for a cluster that `up` started."""
        if not self.borrowed.exists():
            return ""
        return str(json.loads(self.borrowed.read_text())["context"])

    def state(self) -> DevState | None:
        try:
            return DevState.from_json(json.loads(self._state.read_text()))
        except FileNotFoundError:
            return None

    def write(self, state: DevState) -> None:
        """Writes the state with a rename, because other processes read it at any time."""
        draft = self._state.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(state)))
        draft.replace(self._state)
