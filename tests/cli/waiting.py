"""Waits for a condition of another process, until a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(wanted: Callable[[], object], *, what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not wanted():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.05)
