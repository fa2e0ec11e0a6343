"""The way to wait for another process: for what is wanted, until a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(wanted: Callable[[], object], *, what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not wanted():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain: {what}")
        time.sleep(0.05)
