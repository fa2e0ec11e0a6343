"""Builds the wheel with pip's build backend, from a copy whose modes and times do not depend on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from deploy.image.errors import CannotBuildError
from deploy.image.root import REPOSITORY, own_packages

_BACKEND: Final = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
_FILES: Final = ("LICENSE", "README.md", "pyproject.toml")
_TIME: Final = "315532800"  # the earliest time of a zip file: 1980


def wheel() -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        sources, made = Path(scratch) / "sources", Path(scratch) / "made"
        made.mkdir()
        _copy(sources)
        _build(sources, made)
        (built,) = made.glob("*.whl")
        return built.read_bytes()


def _copy(target: Path) -> None:
    for name in own_packages():
        shutil.copytree(REPOSITORY / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in _FILES:
        shutil.copy(REPOSITORY / name, target / name)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _build(sources: Path, made: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _BACKEND, str(made)],
        cwd=sources,
        env=os.environ | {"SOURCE_DATE_EPOCH": _TIME},
        umask=0o022,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CannotBuildError(f"setuptools builds no wheel: {done.stderr.strip()}")
