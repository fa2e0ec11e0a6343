"""Builds the stand-in for `libnvidia-ml.so.1` once, into the cache that the cluster's programs lie in.

Law: the build's folder is named after the hash of what it is made from; a library appears in it whole or not at all.
"""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from devcluster.build.binaries import cache_folder
from devcluster.errors import CannotStartError

LIBRARY: Final = "libnvidia-ml.so.1"

_SOURCE: Final = Path(__file__).with_name("library.c")
_FLAGS: Final = ("-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", f"-Wl,-soname,{LIBRARY}")
_PYPI: Final = "ziglang==0.17.0"  # a C compiler in one wheel, for machines that have none


def library_folder() -> Path:
    """For LD_LIBRARY_PATH: holds the library, built now if it never was."""
    key = hashlib.sha256(b"\0".join([_SOURCE.read_bytes(), *(flag.encode() for flag in _FLAGS)])).hexdigest()[:16]
    folder = cache_folder() / f"nvml-{key}"
    if not (folder / LIBRARY).is_file():
        _build(folder)
    return folder


def _build(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch, LIBRARY)
        command = [*compiler(), *_FLAGS, "-o", str(made), str(_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotStartError(f"`{' '.join(command)}` failed; fix what it says:\n{done.stderr}")
        made.rename(folder / LIBRARY)


def compiler() -> list[str]:
    """The machine's own C compiler, else Zig's: as it is installed, or from PyPI into the cache."""
    own = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if own:
        return [own]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    cached = cache_folder() / _PYPI.replace("==", "-")
    if not cached.is_dir():
        _install(cached)
    return [str(cached / "zig"), "cc"]


def _install(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", scratch, _PYPI]
        if subprocess.run(command, check=False).returncode != 0:
            raise CannotStartError(
                f"install a C compiler (on Debian and Ubuntu: apt install gcc libc6-dev): there is no cc, gcc or clang "
                f"on PATH, and `{' '.join(command[1:])}` failed."
            )
        Path(scratch, "ziglang").rename(folder)
