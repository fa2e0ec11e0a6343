"""Makes every file of a release, by its name."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from deploy.chart.made import CHART, MANIFESTS
from deploy.image.build import image
from deploy.image.layers import layer
from deploy.image.packed import read
from deploy.image.sbom import sbom
from halfcard import __version__

from .wheel import wheel

SUMS: Final = "SHA256SUMS"
_TITLE: Final = f"halfcard-{__version__}"


def artefacts(cache: Path) -> Mapping[str, bytes]:
    packed = image(cache)
    contents = read(packed)
    machine = f"{_TITLE}-linux-{contents.configuration['architecture']}"
    made = {
        f"{_TITLE}-py3-none-any.whl": wheel(),
        f"{machine}.tar": packed,
        f"{machine}.cdx.json": sbom(contents).encode(),
        f"{_TITLE}.tgz": chart(),
        f"{_TITLE}.yaml": MANIFESTS.read_bytes(),
    }
    return {**made, SUMS: sums(made)}


def chart() -> bytes:
    """Packs the chart like `helm package`, without its times, which come from the clock."""
    ignored = [line.rstrip("/") for line in (CHART / ".helmignore").read_text().splitlines()]
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(CHART, Path(scratch) / CHART.name, ignore=shutil.ignore_patterns(*ignored))
        return layer(Path(scratch)).packed


def sums(files: Mapping[str, bytes]) -> bytes:
    """Returns hashes in the format of `sha256sum --check`."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)).encode()


def differing(files: Mapping[str, bytes], folder: Path) -> list[str]:
    """Returns the files that are missing in a folder or differ there."""
    return [name for name, content in files.items() if not _holds(folder / name, content)]


def _holds(file: Path, content: bytes) -> bool:
    return file.is_file() and file.read_bytes() == content
