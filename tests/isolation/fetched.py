"""Keeps what tests fetch in the cache, so that each thing is fetched once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path


def fetched(folder: Path, fetch: Callable[[Path], Path]) -> Path:
    """Returns the folder; where it is missing, `fetch` makes it in a scratch folder and returns it there."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            fetch(Path(scratch)).rename(folder)
    return folder
