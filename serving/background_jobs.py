"""Background jobs that run next to the listeners for the life of the process.

Invariant: a job that fails by a bug is reported and restarted, and the process continues with its last known state.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from serving.log import Log

Job = Callable[[], Awaitable[None]]
"""Begins it; may be called again once it has failed."""

_REPORT_EVERY_S: Final = 1.0
_SOON_S, _LONGEST_S = 1.0, 60.0
"""Before it begins anew: each time that it fails, twice as long."""


@contextlib.asynccontextmanager
async def beside(jobs: Sequence[Job], log: Log, *, soon_s: float = _SOON_S) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(_watched(job, log, soon_s)) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watched(job: Job, log: Log, pause: float) -> None:
    while True:
        try:
            return await job()
        except Exception:  # noqa: BLE001 - whatever the bug is, it must not end in silence
            trace = traceback.format_exc()
            log.error("a background job has failed", begins_anew_in_s=pause, trace=trace)  # noqa: TRY400
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_S)


async def report(problems: Callable[[], tuple[str, ...]], log: Log) -> None:
    """Each problem with what is known is said once, and once more when it comes back."""
    said: tuple[str, ...] = ()
    while True:
        found = problems()
        for problem in found:
            if problem not in said:
                log.warning("state", problem=problem)
        said = found
        await asyncio.sleep(_REPORT_EVERY_S)
