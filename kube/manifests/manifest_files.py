"""Finds and reads the files of manifests: a file that cannot be opened is an error of its line 1."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, NoReturn

from .manifest_error import ManifestError

SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


def files_below(folder: Path) -> list[Path]:
    """Returns the manifests below a folder, sorted; names with a leading dot belong to editors and mounts."""
    found = []
    for place, folders, files in os.walk(folder, onerror=_refuse_folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (Path(place, name) for name in sorted(files) if not name.startswith("."))
        found += [path for path in paths if path.suffix in SUFFIXES and _is_regular(path)]
    return found


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _out_of_reach(str(path), error) from None


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:  # a broken link, or deleted since the folder was listed
        return False
    except OSError:  # reading it reports why
        return True


def _refuse_folder(error: OSError) -> NoReturn:
    raise _out_of_reach(str(error.filename), error) from None


def _out_of_reach(path: str, error: OSError) -> ManifestError:
    what = f"cannot be read: {error.strerror}"
    return ManifestError(path, 1, what=what, fix="check the path and its permissions")
