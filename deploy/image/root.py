"""Writes the files of the image: Debian's, the pinned wheels', Halfcard's, compiled by the Python that runs them, and
the isolation libraries, compiled by Debian's gcc.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from halfcard import names

from .contents import BUILT_WITH_ONLY, GROUP, OWN_FOLDER, PASSWD, PYTHON, UNUSED, WHEELS_FOLDER
from .debian import Package, unpack
from .errors import CannotBuildError

REPOSITORY: Final = Path(__file__).parents[2]
LOCK: Final = REPOSITORY / "requirements.lock"
_OLDEST_LIBC, _LIBC = 17, 36  # of wheels that Debian 12 can load: glibc 2.17 to 2.36
_MACHINES: Final = {"amd64": "x86_64", "arm64": "aarch64"}
_MADE_BY_PIP: Final = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")  # they describe the build machine


def make_base(root: Path, packages: Iterable[Package], *, architecture: str, downloads: Path) -> None:
    """Writes everything except Halfcard's own sources."""
    unpack(packages, root, downloads=downloads)
    for pattern in UNUSED:
        for path in [*root.glob(pattern)]:
            _remove(path)
    (root / "usr/bin/python").symlink_to(f"python{PYTHON}")
    (root / "etc").mkdir(exist_ok=True)
    (root / "etc/passwd").write_text(PASSWD)
    (root / "etc/group").write_text(GROUP)
    (root / "tmp").mkdir()
    _install_wheels(root / WHEELS_FOLDER, architecture, lock=downloads / "requirements.lock")
    _compile(root, root / f"usr/lib/python{PYTHON}", root / WHEELS_FOLDER)


def make_own(root: Path, base: Path) -> None:
    """Writes Halfcard's packages, as `pip install .` selects them, and the isolation libraries."""
    target = root / OWN_FOLDER
    for name in own_packages():
        shutil.copytree(
            REPOSITORY / name, target / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi", "*.proto")
        )
    _compile(base, target)
    build_libraries(root / names.LIBRARIES_FOLDER.lstrip("/"))


def build_libraries(target: Path) -> None:
    """Builds the isolation libraries without debug information, which would name the folder of the build."""
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as built:
        command = ["make", "-s", "-C", str(REPOSITORY / "isolation"), "CC=gcc", f"OUT={built}", "CFLAGS=-O2 -flto -s"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CannotBuildError(f"gcc cannot build isolation/: {done.stderr.strip()}")
        for library in names.ISOLATION_LIBRARIES:
            shutil.copy(Path(built, library), target)


def own_packages() -> list[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    included: list[str] = project["tool"]["setuptools"]["packages"]["find"]["include"]
    return sorted(each for each in included if not each.endswith(".*"))


def wheels_of(lock: str) -> str:
    """Returns the lock file without packages that only a build needs."""
    entries = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)
    return "".join(each for each in entries if not each.startswith(f"{BUILT_WITH_ONLY}=="))


def _install_wheels(target: Path, architecture: str, *, lock: Path) -> None:
    lock.write_text(wheels_of(LOCK.read_text()))
    machine = _MACHINES.get(architecture)
    if machine is None:
        raise CannotBuildError(f"no wheels are pinned for {architecture}: build on {' or '.join(_MACHINES)}.")
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in range(_LIBC, _OLDEST_LIBC - 1, -1)]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
            *("--require-hashes", "--only-binary=:all:", "--implementation=cp", f"--python-version={PYTHON}"),
            *platforms,
            f"--platform=manylinux2014_{machine}",
            *(f"--target={target}", f"--requirement={lock}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise CannotBuildError(f"pip cannot install {LOCK.name}: {done.stderr.strip()}")
    _remove(target / "bin")
    for name in _MADE_BY_PIP:
        for path in [*target.glob(f"*.dist-info/{name}")]:
            _remove(path)


def _compile(base: Path, *folders: Path) -> None:
    """Compiles Python files with unchecked hashes: the files never change, and times would differ from build to
    build.
    """
    libraries = [str(each) for each in (*base.glob("lib/*-linux-gnu"), *base.glob("usr/lib/*-linux-gnu"))]
    (loader,) = [*base.glob("lib64/ld-linux-*"), *base.glob("lib/ld-linux-*")]
    for folder in folders:
        subprocess.run(
            [
                *(loader, "--library-path", ":".join(libraries), base / f"usr/bin/python{PYTHON}", "-sSB"),
                *("-m", "compileall", "-q", "-f", "--invalidation-mode=unchecked-hash", "-s", folder),
                *("-p", f"/{_inside(folder)}", folder),
            ],
            env={"PYTHONHOME": str(base / "usr"), "PYTHONHASHSEED": "0", "PATH": os.defpath},
            check=True,
        )


def _inside(folder: Path) -> str:
    """Returns the path of a folder inside the image, for tracebacks."""
    return next(each for each in (f"usr/lib/python{PYTHON}", WHEELS_FOLDER, OWN_FOLDER) if folder.match(f"*/{each}"))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)  # another link to it may have been removed before
