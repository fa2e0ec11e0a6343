"""The `halfcard` command as people run it: a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


def too_wide(text: str) -> list[str]:
    """Lines over 100 columns that could have been broken; a field path is never torn apart."""
    return [line for line in text.splitlines() if len(line) > 100 and " " in line.strip()]


def halfcard(*arguments: str, stdin: str = "", environment: dict[str, str] | None = None) -> Done:
    done = subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=50,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    return Done(done.returncode, done.stdout, done.stderr)


@dataclass
class Service:
    """A running `halfcard serve`."""

    process: subprocess.Popen[str]
    ready: dict[str, Any]

    def stop(self, by: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(by)
        return self.process.wait(timeout=30)


@contextmanager
def service(state: Path, *arguments: str) -> Iterator[Service]:
    """Started on free ports; the log lies beside the state."""
    with (state.parent / "serve.log").open("w") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "cli", "serve", "--state", str(state), "--grace", "0", *arguments),
                *("--admission", "127.0.0.1:0", "--extender", "127.0.0.1:0", "--status", "127.0.0.1:0"),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
        )
    with process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            yield Service(process, json.loads(line))
        finally:
            process.kill()
