"""Waiting in tests: for a condition that is seen from outside only, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], *, what: str = "the condition", within_s: float = 20) -> None:
    deadline = asyncio.get_running_loop().time() + within_s
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"still waiting for {what} after {within_s} s"
        await asyncio.sleep(0.002)
