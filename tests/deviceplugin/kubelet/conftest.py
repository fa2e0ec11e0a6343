"""A folder for sockets: their paths may have 107 bytes, which pytest's own folders exceed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hc-") as name:
        yield Path(name)


@pytest.fixture(scope="package", autouse=True)
async def _one_loop(anyio_backend: Any) -> None:
    """Keeps one loop for all tests here: gRPC has one queue in a process, and a late event of a closed loop would fail
    the test on the next loop.
    """
