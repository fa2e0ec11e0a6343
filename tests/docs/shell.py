"""Runs commands of the pages in a new folder with the examples, and with Halfcard's commands on PATH."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .pages import ROOT

_LONGEST_S: Final = 50
_ANY_LINES: Final = re.escape("…\n")
_ANY_TEXT: Final = re.escape("…")


@dataclass(frozen=True, slots=True)
class Shell:
    folder: Path

    def prepare(self) -> None:
        (self.folder / "deploy").symlink_to(ROOT / "deploy")
        self.program("halfcard", f'exec "{sys.executable}" -m cli "$@"')
        self.program("python", f'exec "{sys.executable}" "$@"')

    def program(self, name: str, script: str) -> None:
        """Adds a command to PATH."""
        program = self.folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    @property
    def environment(self) -> Mapping[str, str]:
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}

    def run(self, script: str, *, seconds: float = _LONGEST_S) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-euc", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", "-euc", f"exec {command}"],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )


def shows(expected: str, output: str) -> bool:
    """Returns whether this is the output; a line … matches any lines, … within a line any text."""
    pattern = re.escape(expected).replace(_ANY_LINES, r"(?:.*\n)*?").replace(_ANY_TEXT, r".*?")
    return re.fullmatch(pattern, output) is not None
