"""A folder for sockets: their paths may have 107 bytes, which pytest's own folders exceed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hc-") as name:
        yield Path(name)
