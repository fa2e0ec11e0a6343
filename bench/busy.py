"""Processes that only use CPU, beside what is measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

_LONGEST_S: Final = 600
_LOOP: Final = f"import time\nend = time.monotonic() + {_LONGEST_S}\nwhile time.monotonic() < end: pass"
"""Ends by itself, should the bench be killed."""


@contextmanager
def busy_loops(count: int) -> Iterator[list[int]]:
    """Runs so many processes; yields their ids."""
    with ExitStack() as running:
        loops = [running.enter_context(subprocess.Popen([sys.executable, "-c", _LOOP])) for _ in range(count)]
        for loop in loops:
            running.callback(loop.kill)
        yield [loop.pid for loop in loops]
