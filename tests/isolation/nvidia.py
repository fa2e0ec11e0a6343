"""NVIDIA's own driver libraries, from the packages of Debian 12; they need no card to be loaded, and are never shipped.

Law: a library appears in the cache whole or not at all.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from devcluster.build.binaries import cache_folder

PACKAGES: Final = ("libnvidia-tesla-470-cuda1", "libcuda1")
"""The oldest and the newest branch that Debian 12 has: CUDA 11.4 and 12.2."""
NVML_PACKAGES: Final = ("libnvidia-tesla-470-ml1", "libnvidia-ml1")

_KEYS: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"


def driver_library(package: str, name: str = "libcuda.so") -> Path:
    """Returns a package's library, fetched now if it never was; from where apt has Debian's own packages here."""
    library = cache_folder() / "nvidia" / package / name
    if not library.is_file():
        library.parent.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent.parent) as scratch:
            _fetch(package, Path(scratch))
            made = Path(scratch, "made")
            made.mkdir()
            next(Path(scratch, "package").rglob(f"{name}.[45]*")).rename(made / library.name)
            made.rename(library.parent)
    return library


def _fetch(package: str, scratch: Path) -> None:
    for folder in ("lists/partial", "archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    (scratch / "sources.list").write_text(f"deb [signed-by={_KEYS}] {_repository()} bookworm non-free\n")
    options = [
        f"Dir::State::lists={scratch}/lists",
        f"Dir::State::status={scratch}/status",
        f"Dir::Etc::SourceList={scratch}/sources.list",
        "Dir::Etc::SourceParts=/dev/null",
        f"Dir::Cache={scratch}",
        "APT::Sandbox::User=root",
    ]
    apt = ["apt-get", "-qq", *(word for option in options for word in ("-o", option))]
    _run([*apt, "update"], scratch)
    _run([*apt, "download", package], scratch)
    _run(["dpkg-deb", "-x", str(next(scratch.glob("*.deb"))), "package"], scratch)


def _repository() -> str:
    listed = _run(["apt-get", "indextargets", "Created-By: Packages", "Release: bookworm"], Path("/"))
    found = re.search(r"^Repo-URI: (\S+)$", listed, re.MULTILINE)
    assert found, "apt has no source of Debian 12 (bookworm) on this machine"
    return found[1]


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
