"""An earlier version of Halfcard: its sources at a commit, and its image on a node."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from devcluster.errors import CannotStartError
from devcluster.nodes.containerd import SNAPSHOTTER
from devcluster.nodes.node import RealNode
from halfcard import names
from tests.cluster.helm import images

VARIABLE: Final = "HALFCARD_UPGRADE_FROM"
TAG: Final = "earlier"
_REPOSITORY: Final = Path(__file__).parents[2]
_IMAGE: Final = f"{names.OWN_DOMAIN}/halfcard"


def revision() -> str:
    """The revision that the environment variable names; by default the newest tag."""
    if named := os.environ.get(VARIABLE):
        return named
    done = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0"], cwd=_REPOSITORY, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CannotStartError(f"no version has a tag yet: name a commit, such as {VARIABLE}=HEAD~1.")
    return done.stdout.strip()


def export_sources(wanted: str, folder: Path) -> Path:
    """Writes the sources of a revision into a new folder."""
    done = subprocess.run(["git", "archive", wanted], cwd=_REPOSITORY, capture_output=True, check=False)
    if done.returncode:
        raise CannotStartError(f"{VARIABLE}={wanted}: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as opened:
        opened.extractall(folder, filter="data")
    return folder


def load_image(node: RealNode, checkout: Path) -> None:
    """Builds the image with the builder of that version, and gives it a tag that no version has."""
    archive = node.folder / "earlier.tar"
    done = subprocess.run(
        [sys.executable, "-m", "deploy.image", str(archive)], cwd=checkout, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CannotStartError(f"the image of {checkout} cannot be built: {done.stderr}")
    images(node, "import", "--local", f"--snapshotter={SNAPSHOTTER}", str(archive))
    archive.unlink()
    name = done.stdout.split()[0]
    images(node, "tag", name, f"{_IMAGE}:{TAG}")
    images(node, "rm", name)  # this checkout may have the same name
