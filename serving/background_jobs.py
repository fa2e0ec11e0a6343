"""Background jobs that run next to the listeners for the life of the process.

Invariant: a job that fails by a bug is logged with its name and restarted; the process continues with its last known
state.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from serving.log import Log

Job = tuple[str, Callable[[], Awaitable[None]]]
"""A name in plain words, such as "renew certificates", and a function that runs until it is cancelled.

The log shows the name; the function is called again after it has failed.
"""

_REPORT_EVERY_S: Final = 1.0
_FIRST_DELAY_S, _LONGEST_DELAY_S = 1.0, 60.0
"""How long a job that failed waits before its restart; the delay doubles with each failure."""


@contextlib.asynccontextmanager
async def run_in_background(
    jobs: Sequence[Job], log: Log, *, first_delay_s: float = _FIRST_DELAY_S
) -> AsyncIterator[None]:
    """Runs the jobs while the context is open."""
    tasks = [asyncio.create_task(_restarted(name, run, log, first_delay_s), name=name) for name, run in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _restarted(name: str, run: Callable[[], Awaitable[None]], log: Log, delay_s: float) -> None:
    while True:
        try:
            return await run()
        except Exception:  # noqa: BLE001 - whatever the bug is, it must not end in silence
            trace = traceback.format_exc()
            log.error("background job failed", job=name, restarts_in_s=delay_s, trace=trace)  # noqa: TRY400
        await asyncio.sleep(delay_s)
        delay_s = min(2 * delay_s, _LONGEST_DELAY_S)


def report_problems(problems: Callable[[], tuple[str, ...]], log: Log) -> Job:
    """Returns the job that logs each problem when it begins, and again when it comes back."""

    async def report() -> None:
        logged: tuple[str, ...] = ()
        while True:
            found = problems()
            for problem in found:
                if problem not in logged:
                    log.warning("source degraded", problem=problem)
            logged = found
            await asyncio.sleep(_REPORT_EVERY_S)

    return "report problems", report
