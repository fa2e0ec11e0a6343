"""A folder that several processes write: its lock, and files that are replaced whole."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOCK_PATIENCE_S: Final = 10.0  # what is done under the lock takes milliseconds: who holds it longer hangs
_LOCK_POLL_S: Final = 0.02


class BusyFolderError(Exception):
    """Another process holds the lock; the text names the command that finds it."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the lock of the folder; the kernel releases the lock of a process that dies.

    Raises:
        BusyFolderError: another process has held it too long.
        OSError: the folder cannot be written.
    """
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait_for(lock, folder)
        yield
    finally:
        os.close(lock)


def _wait_for(lock: int, folder: Path) -> None:
    deadline = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise BusyFolderError(
                    f"another process has held its lock for {LOCK_PATIENCE_S:.0f} s; "
                    f"find it with: fuser {folder / '.lock'}"
                ) from None
            time.sleep(_LOCK_POLL_S)


def replace_file(file: Path, contents: bytes, *, mode: int) -> None:
    """Replaces a file: it has the old or the new contents, also after a power cut."""
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)  # left by a process that was killed here; this one has the lock
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(contents)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)
    _sync_folder(file.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
