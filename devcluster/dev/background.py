"""Starts the background process of `halfcard dev`, follows it until it is ready, and ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..errors import CannotStartError, NotReadyError
from ..waiting import wait_until
from .state import FAILED, READY, DevFolder

_CHECKOUT: Final = Path(__file__).parents[2]
_UP_WITHIN_S: Final = 180.0  # half a minute is the rule
_DOWN_WITHIN_S: Final = 30.0

Say = Callable[[str], None]
Background = subprocess.Popen[bytes]


def start(folder: DevFolder, lock: int, module: str, say: Say) -> Background:
    """Starts the process and returns when it is ready; ends it if it does not become ready."""
    process = _spawn(folder, lock, module)
    folder.note(lock, process.pid)
    try:
        _follow(folder, process, say)
    except BaseException:
        end(process)
        raise
    return process


def _spawn(folder: DevFolder, lock: int, module: str) -> Background:
    with folder.log.open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, str(folder.path)],
            cwd=_CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in this terminal ends this command, not the cluster
            pass_fds=[lock],
        )


def _follow(folder: DevFolder, process: Background, say: Say) -> None:
    """Prints each phase once until the process is ready."""
    said = ""

    def ready() -> bool:
        nonlocal said
        ended = process.poll() is not None
        state = folder.state()
        if state and state.phase == FAILED:
            raise CannotStartError(state.why)
        if ended:
            raise CannotStartError(f"the cluster's process ended before it was ready\n{_tail(folder)}".rstrip())
        if state and state.phase not in (said, READY):
            said = state.phase
            say(f"  {said}")
        return state is not None and state.phase == READY

    wait_until(ready, what="the cluster to be ready", seconds=_UP_WITHIN_S, details=lambda: _tail(folder))


def _tail(folder: DevFolder) -> str:
    return "\n".join(folder.log.read_text(errors="replace").splitlines()[-20:])


def end(process: Background) -> None:
    process.terminate()
    try:
        process.wait(timeout=_DOWN_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def end_earlier(folder: DevFolder) -> None:
    """Ends the process of an earlier command; when it dies, by SIGKILL too, the kernel ends the cluster's programs
    with it.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        if folder.is_running():
            os.kill(folder.pid(), number)
            with suppress(NotReadyError):
                wait_until(lambda: not folder.is_running(), what="the cluster to end", seconds=_DOWN_WITHIN_S)
