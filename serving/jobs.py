"""Jobs that run beside the listeners of a process for as long as it serves."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Final

from serving.log import Log

Job = Coroutine[Any, Any, None]

_REPORT_EVERY_S: Final = 1.0


@contextlib.asynccontextmanager
async def beside(jobs: Sequence[Job], log: Log) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(_watched(job, log)) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _watched(job: Job, log: Log) -> None:
    """A job that ends by a bug of ours says so; the process goes on with what it knows."""
    try:
        await job
    except Exception:  # noqa: BLE001 - whatever the bug is, it must not end in silence
        log.error("a background job has ended", trace=traceback.format_exc())  # noqa: TRY400 - the trace is a field


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
