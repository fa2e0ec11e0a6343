"""Waits for thousands of objects without loading the API server: counting takes only a share of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from ..errors import NotReadyError

_SHARE: Final = 10
"""The pause between two counts, as a multiple of the time that a count takes."""

Counted = TypeVar("Counted")


def count_until(
    count: Callable[[], Counted],
    enough: Callable[[Counted], bool],
    *,
    what: str,
    seconds: float,
    say: Callable[[str], None],
    details: Callable[[], str],
) -> Counted:
    """Counts until `enough` holds, and returns that count; `what` completes the line "4,000 nodes ready"."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        found = count()
        if enough(found):
            return found
        if time.monotonic() > deadline:
            raise NotReadyError(f"waited {seconds:g} s: only {found} {what}\n{details()}")
        say(f"  {found} {what}")
        time.sleep(_SHARE * (time.monotonic() - began))
