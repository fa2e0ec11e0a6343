"""scripts/timed, which holds each suite to its budget in CI."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

TIMED = Path(__file__).parents[2] / "scripts" / "timed"


def timed(*arguments: str, times: Path | None = None) -> subprocess.CompletedProcess[str]:
    inherited = {name: text for name, text in os.environ.items() if name != "TIMES"}
    environment = inherited | ({"TIMES": str(times)} if times else {})
    return subprocess.run([TIMED, *arguments], capture_output=True, text=True, env=environment, check=False)


def test_a_command_within_its_budget_passes_with_its_own_output() -> None:
    done = timed("lint", "10", "echo", "all good")
    assert (done.returncode, done.stdout) == (0, "all good\n")
    assert re.fullmatch(r"lint +0 min 0\d s of 10 min: passed\n", done.stderr)


def test_a_command_over_its_budget_fails_although_it_succeeded() -> None:
    done = timed("slow", "0", "sleep", "1.1")
    assert done.returncode == 1
    assert re.fullmatch(r"slow +0 min 0[1-9] s of 0 min: over its budget\n", done.stderr)


def test_a_failure_keeps_its_exit_code_and_says_so() -> None:
    done = timed("test", "10", "sh", "-c", "exit 7")
    assert done.returncode == 7
    assert "failed with 7" in done.stderr


def test_several_lines_make_a_summary(tmp_path: Path) -> None:
    times = tmp_path / "times"
    timed("lint", "10", "true", times=times)
    timed("test", "10", "false", times=times)
    assert [line.split()[0] for line in times.read_text().splitlines()] == ["lint", "test"]


@pytest.mark.parametrize("arguments", [(), ("lint",), ("lint", "10")])
def test_too_few_arguments_are_explained(arguments: tuple[str, ...]) -> None:
    done = timed(*arguments)
    assert done.returncode == 2
    assert "usage: scripts/timed NAME MINUTES COMMAND" in done.stderr
