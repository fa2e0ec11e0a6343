"""The state of the process, running or stopping, and the function that runs its coroutine to an exit code.

Law: the first SIGTERM or SIGINT starts a graceful stop and turns readiness off; the second one exits at once.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_OK, EXIT_USAGE, UnusableInputError
from serving.errors import CannotServeError
from serving.log import Log, take_over_library_logging


class Lifecycle:
    def __init__(self) -> None:
        self._stopping = asyncio.Event()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()

    async def wait_until_stopping(self) -> None:
        await self._stopping.wait()


Main = Callable[[Lifecycle], Coroutine[Any, Any, None]]


def start(prepare: Callable[[], Main], *, log: Log) -> int:
    """Runs what `prepare` returns; returns the exit code of the process, also where nothing can be started."""
    try:
        main = prepare()
    except (UnusableInputError, CannotServeError) as error:
        log.error("cannot start", why=str(error))  # noqa: TRY400 - the sentence says it; a trace would hide it
        return EXIT_USAGE if isinstance(error, UnusableInputError) else EXIT_CANNOT_START
    return run(main, log=log)


def run(main: Main, *, log: Log) -> int:
    """Runs `main` on uvloop with signal handlers; returns the exit code of the process."""
    take_over_library_logging(log)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_under_signals(main, log=log))
    finally:
        log.flush()


async def _under_signals(main: Main, *, log: Log) -> int:
    lifecycle = Lifecycle()
    running = asyncio.create_task(main(lifecycle), name="main")
    loop = asyncio.get_running_loop()
    for handled in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(handled, _on_signal, handled, lifecycle, running, log)
    await asyncio.wait([running])
    if running.cancelled():
        return EXIT_CANNOT_START
    problem = running.exception()
    return EXIT_OK if problem is None else _log_failure(problem, log)


def _log_failure(problem: BaseException, log: Log) -> int:
    """Logs a CannotServeError as one line; raises any other error, which is a bug, with its trace."""
    reasons = _causes(problem)
    if not all(isinstance(reason, CannotServeError) for reason in reasons):
        raise problem
    for reason in reasons:
        log.error(str(reason))
    return EXIT_CANNOT_START


def _causes(problem: BaseException) -> list[BaseException]:
    if isinstance(problem, BaseExceptionGroup):
        return [leaf for inner in problem.exceptions for leaf in _causes(inner)]
    return [problem]


def _on_signal(received: signal.Signals, lifecycle: Lifecycle, running: asyncio.Future[None], log: Log) -> None:
    if lifecycle.stopping:
        log.warning("second signal: ending at once", signal=received.name)
        running.cancel()
    else:
        log.event("stopping", signal=received.name)
        lifecycle.stop()
