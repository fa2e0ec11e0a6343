"""A folder for each cluster, removed when it ends, or by the next cluster if its owner was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def _base() -> Path:
    base = Path(tempfile.gettempdir()) / f"halfcard-clusters-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    return base


def _owned(folder: Path) -> bool:
    """Returns whether a running owner holds the lock of the folder."""
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _claim(base: Path) -> tuple[Path, IO[str]]:
    """Creates and locks a folder under the lock of the base, so that no other process sweeps it in between."""
    handle = os.open(base, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for left_over in [folder for folder in base.iterdir() if not _owned(folder)]:
            shutil.rmtree(left_over, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(dir=base))
        lock = (folder / "lock").open("a")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return folder, lock
    finally:
        os.close(handle)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    folder, lock = _claim(_base())
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
