"""Waiting for a condition with a deadline: the only way to wait in this package."""

from __future__ import annotations

import time
from collections.abc import Callable

from .errors import NotReadyError

_POLL_S = 0.05


def wait_until(
    condition: Callable[[], bool],
    *,
    what: str,
    seconds: float = 30.0,
    details: Callable[[], str] = lambda: "",
) -> None:
    """Raises NotReadyError at the deadline; `what` completes the sentence "waited 30 s for …"."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise NotReadyError(f"waited {seconds:g} s for {what}\n{details()}".rstrip())
        time.sleep(_POLL_S)
