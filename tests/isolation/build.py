"""Compiles the C of `isolation/` and of these tests into a folder of the test; also with parts of its text replaced."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.nvml.build import compiler

PRODUCT: Final = Path(__file__).parents[2] / "isolation"
TESTS: Final = Path(__file__).parent
FLAGS: Final = ("-std=gnu11", "-O1", "-g", "-fPIC", "-pthread")
STRICT: Final = ("-Wall", "-Wextra", "-Werror")
SANITIZED: Final = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class Machine(NamedTuple):
    """The compiler for a kind of processor, and what runs its programs here; this one's compiler is found."""

    compiler: tuple[str, ...] = ()
    runner: tuple[str, ...] = ()


HERE: Final = Machine()


class Change(NamedTuple):
    """A text of one file of `isolation/`, which must stand there once, and what replaces it."""

    file: str
    old: str
    new: str


def build(
    made: Path, sources: Sequence[str], *flags: str, changes: Sequence[Change] = (), machine: Machine = HERE
) -> Path:
    """Compiles sources, named relative to `isolation/` or to this folder, into a program, or a library named *.so."""
    copy = made.with_suffix(".sources")
    shutil.copytree(PRODUCT, copy)
    shutil.copytree(TESTS, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for change in changes:
        _apply(copy / change.file, change)
    shared = ("-shared",) if made.suffix == ".so" else ()
    command = [
        *(machine.compiler or compiler()),
        *FLAGS,
        *(() if changes else STRICT),
        *shared,
        *flags,
        "-o",
        str(made),
        *(str(copy / name) for name in sources),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


def _apply(file: Path, change: Change) -> None:
    text = file.read_text()
    assert text.count(change.old) == 1, f"{change.file} has {text.count(change.old)} times: {change.old}"
    file.write_text(text.replace(change.old, change.new))
