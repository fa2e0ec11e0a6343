"""One program of the cluster as a process: start, kill, pause, resume, and its log.

Law: no program outlives the process that runs the tests: the kernel kills it (PR_SET_PDEATHSIG), even when the tests
end with SIGKILL. The kernel does so when the *thread* that started a program ends, so one thread, the launcher's,
starts all programs.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from .errors import NotReadyError

_DIES_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")


def tail(log: Path, lines: int) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:]) if log.exists() else ""


class Launcher:
    """The one long-lived thread that starts programs; closing it ends every program still running."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cluster-launcher")

    def start(self, command: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        return self._thread.submit(self._spawn, command, log, environment).result()

    @staticmethod
    def _spawn(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                [*_DIES_WITH_PARENT, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )

    def close(self) -> None:
        self._thread.shutdown()


@dataclass(slots=True)
class Component:
    """A program that can be started again with the same arguments; its log continues in the same file."""

    name: str
    command: Sequence[str]
    log: Path
    launcher: Launcher
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        if self.running():
            raise RuntimeError(f"{self.name} is running already (pid {self.pid}): kill it before starting it again")
        # Nothing else of the test run's environment: it may name proxies, or another cluster.
        own = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.log.parent), "PYTHONFAULTHANDLER": "1"}
        self.process = self.launcher.start(self.command, log=self.log, environment=own | dict(self.environment))

    def kill(self) -> None:
        """Sends SIGKILL to the process group and waits; does nothing if the program has ended."""
        if self.process is not None and self.running():
            self._send(signal.SIGKILL)
            self.process.wait()

    def terminate(self, *, within_s: float = 30.0) -> int:
        """Sends SIGTERM, as Kubernetes ends a container; returns the exit status. If the program hangs, the error
        shows where.
        """
        self._signal(signal.SIGTERM)
        assert self.process is not None
        try:
            return self.process.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            self._send(signal.SIGABRT)
            self.process.wait(timeout=30)
            said = self.log_tail(100)
            raise NotReadyError(f"{self.name} did not end within {within_s:g} s of SIGTERM; it said:\n{said}") from None

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is None or not self.running():
            raise RuntimeError(f"{self.name} is not running: start it before sending {number.name}")
        self._send(number)

    def _send(self, number: signal.Signals) -> None:
        os.killpg(self.pid, number)

    def log_tail(self, lines: int = 20) -> str:
        return tail(self.log, lines)
