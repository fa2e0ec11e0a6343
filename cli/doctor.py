"""`halfcard doctor`: what is wrong with an installation, and how to fix it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from halfcard.columns import WIDTH
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED
from halfcard.problems import printable

from .diagnosis.checks import CHECKS, diagnose
from .diagnosis.finding import Check, Finding, FindingSeverity
from .diagnosis.snapshot import Snapshot
from .inputs.cluster_state import add_access_arguments, find_access
from .inputs.survey import take
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Colour, Progress, Screen, counted

_MOST_OF_A_CHECK: Final = 5
_WORDS_CHARS: Final = 400
_COLOURS: Final = {
    FindingSeverity.BROKEN: Colour.RED,
    FindingSeverity.WARNING: Colour.YELLOW,
    FindingSeverity.NOTE: Colour.DIM,
}
_NAMES: Final = {check.name: check for check in CHECKS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    parser.add_argument("--explain", choices=_NAMES, metavar="CHECK", help="only explain this check")
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    screen = Screen.on(sys.stdout)
    if arguments.explain:
        _explain(screen, _NAMES[arguments.explain])
        return EXIT_OK
    with Progress(sys.stderr, "halfcard doctor") as progress:
        seen = take(find_access(arguments), arguments.namespace, arguments.settings, progress.say)
    found = diagnose(seen)
    is_healthy = not any(_counts(each, strict=arguments.strict) for each in found)
    if arguments.output != TEXT:
        report = {"healthy": is_healthy, "checks": len(CHECKS), "findings": [each._asdict() for each in found]}
        print_document(arguments.output, report)
    else:
        _print(screen, seen, found)
    return EXIT_OK if is_healthy else EXIT_REFUSED


def _counts(finding: Finding, *, strict: bool) -> bool:
    return finding.severity is FindingSeverity.BROKEN or (strict and finding.severity is FindingSeverity.WARNING)


def _explain(screen: Screen, check: Check) -> None:
    screen.line(screen.paint(f"{check.name} ({check.severity})", Colour.BOLD))
    screen.wrapped(f"{check.rule[0].upper()}{check.rule[1:]}.", indent="  ")
    screen.wrapped(check.why, indent="  ")


# --- printing --------------------------------------------------------------------------------------------------------


def _print(screen: Screen, seen: Snapshot, found: Sequence[Finding]) -> None:
    for severity in FindingSeverity:
        of_it = [each for each in found if each.severity is severity]
        for _, findings in groupby(of_it, key=lambda each: each.check):
            _print_check(screen, list(findings))
    screen.line(_summary(screen, seen, found))


def _print_check(screen: Screen, findings: Sequence[Finding]) -> None:
    """Prints what several findings of a check have in common once."""
    first, last_fix = findings[0], ""
    screen.line(screen.paint(f"{first.severity}: {first.check}", _COLOURS[first.severity]))
    screen.wrapped(f"rule: {first.rule}", indent="  ", hanging="  ")
    for each in findings[:_MOST_OF_A_CHECK]:
        where, got = printable(each.where, _WORDS_CHARS), printable(each.got, _WORDS_CHARS)
        screen.wrapped(f"{where}: {got}", indent="  ", hanging="  ")
        if each.fix != last_fix:
            screen.wrapped(f"fix: {each.fix}", indent="    ", hanging="  ")
        if each.command:
            _print_command(screen, each.command)
        last_fix = each.fix
    if (more := len(findings) - _MOST_OF_A_CHECK) > 0:
        screen.line(screen.paint(f"  … and {more} more; -o json lists all", Colour.DIM))
    screen.line()


def _print_command(screen: Screen, command: str) -> None:
    """Breaks a long command between words, so that a shell accepts it unchanged."""
    line = "     "
    for word in command.split():
        if len(line) + len(word) + len("  \\") > WIDTH:
            screen.line(f"{line} \\")
            line = "         "
        line += f" {word}"
    screen.line(line)


def _summary(screen: Screen, seen: Snapshot, found: Sequence[Finding]) -> str:
    looked = f"{len(CHECKS)} checks of {counted(len(seen.nodes), 'node')} and {counted(seen.counted_pods, 'pod')}"
    if not found:
        return screen.paint(f"Nothing is wrong: {looked}.", Colour.GREEN)
    counts = Counter(each.severity for each in found)
    words = [f"{counts[FindingSeverity.BROKEN]} broken", counted(counts[FindingSeverity.WARNING], "warning")]
    return f"{', '.join([*words, counted(counts[FindingSeverity.NOTE], 'note')])}: {looked}."
