"""What a development cluster leaves on disk: where it is, how far it has come, and whether it lives.

Law: it lives as long as its process holds the lock; what the files say beside that is only the last news.
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


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the cluster."""

    name: str
    pid: int
    health_url: str
    log: str


@dataclass(frozen=True, slots=True)
class DevState:
    """`phase` is what happens now, READY, or FAILED, of which `why` tells more.

    Attributes:
        no_node: why there is no node on which pods really run; empty where there is one, or where none was wanted.
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
    """The folder holds something else."""


def _taken(handle: int, kind: int = fcntl.LOCK_EX) -> bool:
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
        """Where Halfcard is in a cluster of somebody else: its context, and the mark of what we put there."""
        return self.path / "borrowed.json"

    @property
    def _lock(self) -> Path:
        return self.path / "lock"

    @property
    def _state(self) -> Path:
        return self.path / "state.json"

    @contextmanager
    def claimed(self) -> Iterator[int]:
        """The lock as a file descriptor: a process that inherits it goes on holding it."""
        if self.path.exists() and any(self.path.iterdir()) and not self._lock.exists():
            raise FolderTakenError(f"{self.path} holds other files: name an empty or a new folder with --dir")
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            wait_until(lambda: _taken(handle), what=f"the lock of {self.path}: another cluster lives there", seconds=2)
            if not self._is_lock(handle):
                raise NotReadyError(f"{self.path} was removed at the same moment: try again")
            yield handle
        finally:
            os.close(handle)

    def _is_lock(self, handle: int) -> bool:
        """Somebody may have removed the file between our opening and our locking it."""
        return self._lock.exists() and os.path.samestat(os.fstat(handle), self._lock.stat())

    def note(self, handle: int, pid: int) -> None:
        """In the lock, whose holder it is."""
        os.pwrite(handle, f"{pid}\n".encode(), 0)

    def pid(self) -> int:
        return int(self._lock.read_text())

    def exists(self) -> bool:
        return self._lock.exists()

    def lives(self) -> bool:
        if not self._lock.exists():
            return False
        with self._lock.open() as lock:
            return not _taken(lock.fileno(), fcntl.LOCK_SH)

    def clear(self) -> None:
        """Only what a cluster writes: the folder may be somebody's."""
        for folder in (self.cluster, self.programs):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (self.kubeconfig, self.authority, self.log, self.borrowed, self._state):
            file.unlink(missing_ok=True)

    def remove(self) -> None:
        """While claimed."""
        self.clear()
        self._lock.unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()

    def context(self) -> str:
        """Empty where the cluster is its own."""
        if not self.borrowed.exists():
            return ""
        return str(json.loads(self.borrowed.read_text())["context"])

    def state(self) -> DevState | None:
        try:
            return DevState.from_json(json.loads(self._state.read_text()))
        except FileNotFoundError:
            return None

    def write(self, state: DevState) -> None:
        """Whole or not at all: somebody reads it all the time."""
        draft = self._state.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(state)))
        draft.replace(self._state)
