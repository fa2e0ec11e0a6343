"""Debian's packages, unpacked into the cache and never installed; fetched by apt from where it has Debian's own here.

Law: a package appears in the cache whole or not at all.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from devcluster.build.binaries import cache_folder

from .fetched import fetched

_KEYS: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"
_EVEN: Final = "Package: *\nPin: release o=Debian\nPin-Priority: 500\n"
"""Of several suites, the newest version is taken; apt would avoid experimental."""


class Package(NamedTuple):
    """A package, as the newest of these suites has it."""

    name: str
    suites: tuple[str, ...] = ("bookworm",)
    component: str = "main"

    @property
    def id(self) -> str:
        return f"{self.name}-{self.suites[-1]}"


def unpacked(package: Package) -> Path:
    """Returns the folder with a package's files, fetched now if it never was."""
    folder = cache_folder() / "debian" / package.id
    return fetched(folder, partial(_fetch, package))


def _fetch(package: Package, scratch: Path) -> Path:
    for folder in ("lists/partial", "archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    (scratch / "preferences").write_text(_EVEN)
    (scratch / "sources.list").write_text("".join(_sources(package)))
    apt = ["apt-get", "-qq", *_options(scratch)]
    _run([*apt, "update"], scratch)
    _run([*apt, "download", package.name], scratch)
    _run(["dpkg-deb", "-x", str(next(scratch.glob("*.deb"))), "package"], scratch)
    return scratch / "package"


def _sources(package: Package) -> list[str]:
    where = f"deb [signed-by={_KEYS}] {_repository()}"
    return [f"{where} {suite} {package.component}\n" for suite in package.suites]


def _options(scratch: Path) -> Sequence[str]:
    options = [
        f"Dir::State::lists={scratch}/lists",
        f"Dir::State::status={scratch}/status",
        f"Dir::Etc::SourceList={scratch}/sources.list",
        f"Dir::Etc::Preferences={scratch}/preferences",
        "Dir::Etc::SourceParts=/dev/null",
        f"Dir::Cache={scratch}",
        "Acquire::Languages=none",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
        "APT::Sandbox::User=root",
    ]
    return [word for option in options for word in ("-o", option)]


def _repository() -> str:
    listed = _run(["apt-get", "indextargets", "Created-By: Packages", "Release: bookworm"], Path("/"))
    found = re.search(r"^Repo-URI: (\S+)$", listed, re.MULTILINE)
    assert found, "apt has no source of Debian 12 (bookworm) on this machine"
    return found[1]


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
