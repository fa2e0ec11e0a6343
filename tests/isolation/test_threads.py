"""Threads of one program allocate in all ways at once, under the thread sanitizer."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from .build import build
from .node import CONTEXT_MIB, LIMIT_MIB, MIB, Driver, share

ROUNDS: Final = 2000
SANITIZED: Final = "-fsanitize=thread"


def test_threads_that_allocate_and_free_race_nowhere_and_leave_nothing(tmp_path: Path) -> None:
    driver = Driver(tmp_path / "halfcard", SANITIZED, sanitizers=(SANITIZED,))
    driver.container(share(0)._replace(share=900), share(1))
    threads = build(tmp_path / "threads", ["threads.c"], SANITIZED, "-Wno-strict-prototypes")
    done = subprocess.run([str(threads), str(ROUNDS), str(driver.library)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == (LIMIT_MIB - CONTEXT_MIB) * MIB
