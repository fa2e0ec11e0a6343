"""Places the isolation libraries on the node, in a folder named after their content, so that an upgrade changes no file
that a running container has mapped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from halfcard import names

from .way_in import PRELOAD, NotHeldError

_DRAFT: Final = ".new"
_HASH_DIGITS: Final = 16
_PRELOADED: Final = f"{names.RUN_FOLDER}/library/{names.ISOLATION_LIBRARIES[-1]}\n".encode()


def place(source: Path, target: Path) -> Path:
    """Returns the folder of the libraries below `target`; other versions stay.

    Raises:
        NotHeldError: the agent has no libraries, they cannot be written, or what lies there is something else.
    """
    try:
        wanted = {name: (source / name).read_bytes() for name in names.ISOLATION_LIBRARIES} | {PRELOAD: _PRELOADED}
        folder = target / _hash(wanted)
        if not folder.exists():
            _write(folder, wanted)
        found = {file.name: file.read_bytes() for file in folder.iterdir()}
    except OSError as error:
        raise NotHeldError(f"the isolation libraries cannot be placed: {error}") from None
    if found != wanted:
        raise NotHeldError(f"{folder}: got other files than the agent placed there; remove it, and restart the agent")
    return folder


def _hash(files: Mapping[str, bytes]) -> str:
    parts = [
        hashlib.sha256(part).digest() for name, content in sorted(files.items()) for part in (name.encode(), content)
    ]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:_HASH_DIGITS]


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes a whole folder or none, also where the machine fails in between."""
    draft = folder.with_name(folder.name + _DRAFT)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o755, parents=True)
    for name, content in files.items():
        (draft / name).write_bytes(content)
        (draft / name).chmod(0o755)  # regardless of our umask: containers run as any user
        _to_disk(draft / name)
    draft.chmod(0o755)
    _to_disk(draft)
    draft.rename(folder)
    _to_disk(folder.parent)


def _to_disk(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
