"""`halfcard dev`: a real Kubernetes with Halfcard in it, on this machine, from a checkout; it goes as it came."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from .exits import EXIT_CANNOT_START

_CHECKOUT: Final = Path(__file__).resolve().parents[1]
_HARNESS: Final = _CHECKOUT / "tests" / "cluster" / "dev_command.py"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("up", "down", "status"), help="start it, remove it, say how it is")
    parser.add_argument("--dir", type=Path, help="where all of it lies (default ~/.local/state/halfcard/dev)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="form of status")


def run(arguments: argparse.Namespace) -> int:
    if why_not := _why_not():
        print(f"halfcard dev: {why_not}", file=sys.stderr)
        return EXIT_CANNOT_START
    sys.path.insert(0, str(_CHECKOUT))
    from tests.cluster import dev_command  # noqa: PLC0415  (an installed Halfcard has no such package)

    return dev_command.run(arguments.action, arguments.dir, arguments.output)


def _why_not() -> str:
    if sys.platform != "linux":
        return f"Kubernetes runs on Linux, this is {sys.platform}; use a Linux machine, or `halfcard demo` here"
    if not _HARNESS.is_file():
        return f"{_CHECKOUT} is no checkout of the source; run .venv/bin/halfcard of one, after `make environment`"
    return ""
