"""Builds the image; the base of Debian packages and wheels is cached by its inputs."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from halfcard import __version__, names

from . import debian
from .archive import archive
from .debian import Package
from .layers import Layer, layer, sha256
from .root import LOCK, make_base, make_own

NAME: Final = f"{names.OWN_DOMAIN}/halfcard:{__version__}"
_LABELS: Final = {
    "org.opencontainers.image.title": "halfcard",
    "org.opencontainers.image.version": __version__,
    "org.opencontainers.image.licenses": "Apache-2.0",
}


@dataclass(frozen=True, slots=True)
class Base:
    root: Path
    layer: Layer


def image(cache: Path) -> bytes:
    """Writes the archive."""
    debian.check_machine()
    debian.check_closed()
    architecture = debian.architecture()
    base = _base(debian.taken(), architecture, cache)
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        make_own(root, base.root)
        own = layer(root)
    return archive([base.layer, own], name=NAME, architecture=architecture, labels=_LABELS)


def write_root(target: Path) -> None:
    """Writes only the files, for a Dockerfile."""
    debian.check_machine()
    debian.check_closed()
    with tempfile.TemporaryDirectory() as scratch:
        downloads = Path(scratch) / "downloads"
        make_base(target, debian.taken(), architecture=debian.architecture(), downloads=downloads)
    make_own(target, target)


def default_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "halfcard" / "image"


def _base(packages: list[Package], architecture: str, cache: Path) -> Base:
    folder = cache / _key(packages, architecture)
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _make(Path(scratch), packages, architecture)
            _publish(Path(scratch) / "base", folder)
    return Base(folder / "root", Layer((folder / "layer.tar.gz").read_bytes(), (folder / "diff-id").read_text()))


def _make(scratch: Path, packages: Iterable[Package], architecture: str) -> None:
    root = scratch / "base" / "root"
    root.mkdir(parents=True)
    make_base(root, packages, architecture=architecture, downloads=scratch / "downloads")
    made = layer(root)
    (root.parent / "layer.tar.gz").write_bytes(made.packed)
    (root.parent / "diff-id").write_text(made.diff_id)


def _publish(made: Path, folder: Path) -> None:
    """Moves a complete folder into the cache; an existing one stays."""
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        shutil.rmtree(made)


def _key(packages: Iterable[Package], architecture: str) -> str:
    """Returns the cache key of the base, a hash of its inputs."""
    how = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    what = [*(f"{each.file} {each.sha256}".encode() for each in packages), architecture.encode(), LOCK.read_bytes()]
    return sha256(b"\0".join(hashlib.sha256(each).digest() for each in (*what, *how))).partition(":")[2][:16]
