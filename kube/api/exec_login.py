"""Logs in with the program of a kubeconfig, and again before its credential ends or when the API server refuses it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from functools import cache
from threading import Lock
from typing import Final

from halfcard.problems import printable

from .access import AccessError
from .exec_program import Credential, ExecProgram, exec_info, read_credential

_LAST_LINES: Final = 5


class ExecLogin:
    """Keeps a credential for all connections and threads of the process."""

    def __init__(self, program: ExecProgram, cluster: str, where: str) -> None:
        self._program = program
        self._cluster = cluster
        self._where = where
        self._lock = Lock()
        self._credential: Credential | None = None
        self._obtained_at = 0.0

    def credential(self) -> Credential:
        """Returns the current one; runs the program where there is none, and waits while it runs."""
        with self._lock:
            if self._credential is None or self._credential.renew_at <= datetime.now(UTC):
                self._credential = self._log_in()
                self._obtained_at = time.monotonic()
            return self._credential

    def token(self) -> str:
        return self.credential().token

    def forget(self, asked_at: float) -> None:
        """Forgets the credential with which a request of that time was refused; a newer one is kept."""
        with self._lock:
            if self._obtained_at <= asked_at:
                self._credential = None

    def _log_in(self) -> Credential:
        printed = self._run(interactive=self._interactive())
        try:
            return read_credential(self._program, printed, datetime.now(UTC))
        except ValueError as error:
            raise self._failed(f"printed no usable credential: {error}") from None

    def _interactive(self) -> bool:
        """Returns whether the program may ask the user, as its mode and standard input allow."""
        terminal = sys.stdin is not None and sys.stdin.isatty()
        if self._program.interactive_mode == "Always" and not terminal:
            raise self._failed("asks questions (interactiveMode: Always), and standard input is no terminal")
        return terminal and self._program.interactive_mode != "Never"

    def _run(self, *, interactive: bool) -> bytes:
        """Runs the program; what it writes to standard error is shown at once on a terminal, else it is quoted."""
        info = {"KUBERNETES_EXEC_INFO": exec_info(self._program, self._cluster, interactive=interactive)}
        try:
            done = subprocess.run(  # noqa: S603  (the user's own kubeconfig names it)
                [self._program.command, *self._program.args],
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if sys.stderr.isatty() else subprocess.PIPE,
                env={**os.environ, **self._program.variables(), **info},
                check=False,
            )
        except (OSError, ValueError) as error:
            raise self._failed(f"cannot be started: {error}") from None
        if done.returncode:
            raise self._failed(f"ended with exit code {done.returncode}{_quoted(done.stderr)}")
        return done.stdout

    def _failed(self, what: str) -> AccessError:
        hint = printable(" ".join(self._program.install_hint.split()))
        advice = hint or "run it yourself, or renew the kubeconfig with the command that made it"
        return AccessError(f'{self._where}: the program "{self._program.command}" {what}; {advice}')


login_with: Final = cache(ExecLogin)
"""The login of a program: commands that read a kubeconfig several times log in once."""


def _quoted(errors: bytes | None) -> str:
    lines = [line.strip() for line in (errors or b"").decode(errors="replace").splitlines() if line.strip()]
    return f": {printable(' | '.join(lines[-_LAST_LINES:]))}" if lines else ""
