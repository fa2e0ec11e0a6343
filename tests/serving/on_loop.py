"""Runs a coroutine test on the loop that production uses."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

import uvloop

P = ParamSpec("P")


def on_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    async def in_time(*args: P.args, **kwargs: P.kwargs) -> None:
        async with asyncio.timeout(20):
            await test(*args, **kwargs)

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(in_time(*args, **kwargs))

    return run


async def until(condition: Callable[[], bool], *, what: str, within_s: float = 5.0) -> None:
    deadline = asyncio.get_running_loop().time() + within_s
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"never happened: {what}"
        await asyncio.sleep(0.005)
