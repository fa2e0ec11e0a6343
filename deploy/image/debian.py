"""Reads Debian packages by apt: versions, dependencies and files."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .contents import LEFT_OUT, PYTHON, TAKEN
from .errors import CannotBuildError

_PROGRAMS: Final = ("apt-cache", "apt-get", "dpkg", "dpkg-deb", "gcc", "make")
_DEPENDS: Final = re.compile(r"^ ([ |])(?:Pre)?Depends: (\S+)$")
_DOWNLOAD: Final = re.compile(r"^'[^']+' (\S+\.deb) \d+ SHA256:([0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """One version of a package, and its file."""

    file: str
    sha256: str


def check_machine() -> None:
    if missing := [program for program in _PROGRAMS if shutil.which(program) is None]:
        raise CannotBuildError(
            f"no {', '.join(missing)}: build it on Debian 12 with gcc, libc6-dev and make, or by its Dockerfile."
        )


def architecture() -> str:
    """Returns the architecture in the spelling of Debian and container engines."""
    return _output("dpkg", "--print-architecture").strip()


def taken() -> list[Package]:
    """Returns the packages that apt would fetch now, by name."""
    listing = _output("apt-get", "download", "--print-uris", "-qq", *TAKEN)
    return packages_of(listing)


def packages_of(listing: str) -> list[Package]:
    found = sorted(Package(file, sha256) for file, sha256 in _DOWNLOAD.findall(listing))
    if len(found) != len(TAKEN):
        raise CannotBuildError(
            f"apt names {len(found)} packages with their hashes instead of {len(TAKEN)}: run `apt-get update`, on "
            f"Debian 12, which has Python {PYTHON}."
        )
    return found


def check_closed() -> None:
    """Checks that every dependency is in TAKEN or LEFT_OUT."""
    if strange := unaccounted(_output("apt-cache", "depends", *TAKEN)):
        raise CannotBuildError(
            f"undecided dependencies of the image's packages: {', '.join(strange)}; add each to "
            "TAKEN or LEFT_OUT in deploy/image/contents.py."
        )


def unaccounted(listing: str, known: Mapping[str, object] | None = None) -> list[str]:
    """Returns dependencies without a known alternative; apt marks all but the last alternative with a bar."""
    known = {**TAKEN, **LEFT_OUT} if known is None else known
    strange, alternatives = set(), []
    for line in listing.splitlines():
        if match := _DEPENDS.match(line):
            alternatives.append(match[2])
            if match[1] == " ":
                strange |= _strange(alternatives, known)
                alternatives = []
    return sorted(strange)


def _strange(alternatives: Sequence[str], known: Mapping[str, object]) -> set[str]:
    return set() if any(each in known for each in alternatives) else {" | ".join(alternatives)}


def unpack(packages: Iterable[Package], root: Path, *, downloads: Path) -> None:
    """Fetches and unpacks packages; keeps the files that image scanners read."""
    downloads.mkdir(parents=True)
    _output("apt-get", "download", "-qq", *TAKEN, folder=downloads)
    status = root / "var/lib/dpkg/status.d"
    status.mkdir(parents=True)
    for package in packages:
        archive = downloads / package.file
        if not archive.is_file() or hashlib.sha256(archive.read_bytes()).hexdigest() != package.sha256:
            raise CannotBuildError(
                f"{package.file} has another hash than apt's lists: run `apt-get update` and build again."
            )
        _output("dpkg-deb", "--extract", str(archive), str(root))
        (status / package.file.partition("_")[0]).write_text(_output("dpkg-deb", "--field", str(archive)))


def _output(*command: str, folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip()
        raise CannotBuildError(f"`{' '.join(command[:2])}` failed: {said}\nRun `apt-get update`, and build again.")
    return done.stdout
