"""`halfcard doctor`: what is wrong with an installation, and how to fix it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from halfcard.exit_codes import EXIT_NOT_INSTALLED, EXIT_OK, EXIT_REFUSED

from .diagnosis.checks import CHECKS, Diagnosis, diagnose
from .diagnosis.finding import FindingSeverity
from .diagnosis.snapshot import Snapshot
from .inputs.cluster_state import NoClusterError, add_access_arguments, find_access
from .inputs.survey import take
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Progress, Screen
from .reports.doctor_report import document, explain, is_installed, show, summary

_NAMES: Final = {check.name: check for check in CHECKS}
_WAITS_S: Final = 300.0
_PAUSE_S: Final = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Exit codes: 0 nothing is broken, 1 something is (after --wait: still), 2 nodes or pods cannot be read,"
        " 5 Halfcard is not installed."
    )
    add_access_arguments(parser)
    parser.add_argument("--settings", type=Path, metavar="FILE", help="default: those in the cluster, if any")
    parser.add_argument(
        "-n",
        "--namespace",
        default="default",
        metavar="NAME",
        help="where dry-run pods are created; default %(default)s",
    )
    parser.add_argument("--strict", action="store_true", help="warnings make the exit code 1, too")
    parser.add_argument(
        "--wait",
        type=_seconds,
        nargs="?",
        const=_WAITS_S,
        metavar="SECONDS",
        help=f"until nothing is broken; {_WAITS_S:g} if no number is given",
    )
    parser.add_argument("--explain", choices=_NAMES, metavar="CHECK", help="only explain this check")
    add_output_argument(parser)


def _seconds(text: str) -> float:
    try:
        return max(float(text), 0.0)
    except ValueError:
        raise argparse.ArgumentTypeError(f'got "{text}"; write a number of seconds, such as 300') from None


def run(arguments: argparse.Namespace) -> int:
    screen = Screen.on(sys.stdout)
    if arguments.explain:
        explain(screen, _NAMES[arguments.explain])
        return EXIT_OK
    with Progress(sys.stderr, "halfcard doctor") as progress:
        seen, found = _examine(arguments, progress.say)
    code = _code(found, strict=arguments.strict)
    if arguments.output != TEXT:
        print_document(arguments.output, document(seen, found, is_healthy=code == EXIT_OK))
    else:
        show(screen, seen, found)
    return code


def _examine(arguments: argparse.Namespace, say: Callable[[str], None]) -> tuple[Snapshot, Diagnosis]:
    """Examines the cluster; with --wait again until it is healthy or the time is over, also if it is not reached."""
    deadline, progress = time.monotonic() + (arguments.wait or 0.0), say
    while True:
        try:
            seen = take(find_access(arguments), arguments.namespace, arguments.settings, say)
            found = diagnose(seen)
            if _code(found, strict=arguments.strict) == EXIT_OK or time.monotonic() >= deadline:
                return seen, found
            state = _names(found)
        except NoClusterError as error:
            if time.monotonic() >= deadline:
                raise
            state = str(error)
        say = _nothing  # the progress is now that of the installation
        progress(f"{max(deadline - time.monotonic(), 0):.0f} s left: {state}")
        time.sleep(_PAUSE_S)


def _nothing(_: str) -> None:
    pass


def _names(found: Diagnosis) -> str:
    return f"{summary(found)}: {', '.join(dict.fromkeys(each.check for each in found.findings))}"


def _code(found: Diagnosis, *, strict: bool) -> int:
    if not is_installed(found):
        return EXIT_NOT_INSTALLED
    failing = {FindingSeverity.BROKEN, FindingSeverity.WARNING} if strict else {FindingSeverity.BROKEN}
    return EXIT_REFUSED if any(each.severity in failing for each in found.findings) else EXIT_OK
