"""What a command imports before it does anything, and how it ends early."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from cli.__main__ import parser
from halfcard.exit_codes import EXIT_INTERRUPTED

_HEAVY = {
    "cryptography",
    "fastapi",
    "grpc",
    "httpx",
    "kubernetes",
    "msgspec",
    "prometheus_client",
    "pydantic",
    "uvicorn",
    "yaml",
}

_REPORT = """
import atexit, sys
atexit.register(lambda: print("imported", *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr))
from cli.__main__ import main
sys.exit(main())
"""


def imported(*typed: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", _REPORT, *typed], capture_output=True, text=True, check=False)
    (report,) = (line for line in done.stderr.splitlines() if line.startswith("imported "))
    return set(report.split()[1:])


@pytest.mark.parametrize("typed", ["--version", "--help", ""])
def test_the_command_alone_imports_no_package_of_others(typed: str) -> None:
    assert not imported(*typed.split()) & _HEAVY


def test_a_command_is_imported_without_the_others() -> None:
    assert not imported("inspect", "--help") & {"fastapi", "uvicorn", "grpc", "cryptography"}


def test_the_parser_of_one_command_names_all_of_them() -> None:
    assert parser(only="top").format_help() == parser().format_help()


def test_an_interrupted_command_ends_without_a_traceback() -> None:
    command = subprocess.Popen(
        [sys.executable, "-m", "cli", "review", "-f", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_accept_ctrl_c,  # noqa: PLW1509 - no thread of this process holds a lock that the child needs
    )
    assert command.stdin is not None
    command.stdin.write("kind: Pod\n" * 20_000)  # more than a pipe holds: the command reads
    command.stdin.flush()
    os.kill(command.pid, signal.SIGINT)
    out, err = command.communicate(timeout=20)
    assert (command.returncode, out, err) == (EXIT_INTERRUPTED, "", "")


def _accept_ctrl_c() -> None:
    """Resets what a shell sets for programs in the background: they ignore Ctrl-C, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
