"""`halfcard dev`: a real Kubernetes with Halfcard in it, on this machine, from a checkout; `down` removes all of it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from halfcard.exit_codes import EXIT_CANNOT_START, EXIT_USAGE

from .output.structured import add_output_argument

_CHECKOUT: Final = Path(__file__).resolve().parents[1]
_COMMAND: Final = _CHECKOUT / "devcluster" / "dev" / "command.py"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("up", "down", "status"), help="start it, remove it, show its health")
    parser.add_argument("--dir", type=Path, help="its folder (default ~/.local/state/halfcard/dev)")
    parser.add_argument(
        "--context",
        metavar="NAME",
        help="up: Halfcard beside that cluster of your kubeconfig, for evaluation, instead of a cluster of its own",
    )
    parser.add_argument(
        "--advertise",
        metavar="HOST",
        help="with --context: where its API server reaches this machine (default: our address towards it)",
    )
    add_output_argument(parser, what="form of status")


def run(arguments: argparse.Namespace) -> int:
    if misplaced := _misplaced(arguments):
        print(f"halfcard dev: {misplaced}", file=sys.stderr)
        return EXIT_USAGE
    if why_not := _why_not():
        print(f"halfcard dev: {why_not}", file=sys.stderr)
        return EXIT_CANNOT_START
    sys.path.insert(0, str(_CHECKOUT))
    from devcluster.dev import command, context_access  # noqa: PLC0415  (an installed Halfcard has no such package)

    context, advertise = arguments.context, arguments.advertise
    borrowed = context_access.ContextOptions(context, advertise or "") if context else None
    return command.run(arguments.action, arguments.dir, arguments.output, borrowed)


def _misplaced(arguments: argparse.Namespace) -> str:
    if arguments.context is not None and arguments.action != "up":
        return f"--context is an option of `up`; `{arguments.action}` reads the cluster from its folder"
    if arguments.context == "":
        return "--context needs a name; `kubectl config get-contexts` lists them"
    if arguments.advertise is not None and not arguments.context:
        return "--advertise needs --context: only an existing cluster has to reach this machine"
    return ""


def _why_not() -> str:
    if sys.platform != "linux":
        return f"Kubernetes runs on Linux, this is {sys.platform}; use a Linux machine, or `halfcard demo` here"
    if not _COMMAND.is_file():
        return f"{_CHECKOUT} is not a checkout of the source; run .venv/bin/halfcard of one, after `make environment`"
    return ""
