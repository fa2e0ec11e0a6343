"""The report of `halfcard doctor`, for a terminal and for scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from halfcard import __version__
from halfcard.columns import WIDTH
from halfcard.problems import printable

from ..diagnosis.checks import CHECKS, Diagnosis
from ..diagnosis.finding import Check, Finding, FindingSeverity
from ..diagnosis.presence import NOT_INSTALLED
from ..diagnosis.snapshot import Snapshot
from ..output.terminal import Colour, Screen, counted

_MOST_OF_A_CHECK: Final = 5
_WORDS_CHARS: Final = 400
_COLOURS: Final = {
    FindingSeverity.BROKEN: Colour.RED,
    FindingSeverity.WARNING: Colour.YELLOW,
    FindingSeverity.NOTE: Colour.DIM,
}


def is_installed(found: Diagnosis) -> bool:
    return all(each.check != NOT_INSTALLED for each in found.findings)


def summary(found: Diagnosis) -> str:
    """Counts the findings by severity, in a few words."""
    counts = Counter(each.severity for each in found.findings)
    words = [f"{counts[FindingSeverity.BROKEN]} broken", counted(counts[FindingSeverity.WARNING], "warning")]
    return ", ".join([*words, counted(counts[FindingSeverity.NOTE], "note")])


# --- for scripts -----------------------------------------------------------------------------------------------------


def document(seen: Snapshot, found: Diagnosis, *, is_healthy: bool) -> dict[str, Any]:
    return {
        "healthy": is_healthy,
        "installed": is_installed(found),
        "checks": len(CHECKS),
        "versions": _versions(seen),
        "findings": [each._asdict() for each in found.findings],
        "consequences": [each._asdict() for each in found.consequences],
    }


def _versions(seen: Snapshot) -> dict[str, Any]:
    images = sorted({image for each in seen.workloads if each.is_ours for image in each.images})
    nodes = [{"node": node.name, **node.system._asdict()} for node in seen.nodes]
    return {"doctor": __version__, "kubernetes": seen.api_server, "images": images, "nodes": nodes}


# --- for a terminal --------------------------------------------------------------------------------------------------


def explain(screen: Screen, check: Check) -> None:
    screen.line(screen.paint(f"{check.name} ({check.severity})", Colour.BOLD))
    screen.wrapped(f"{check.rule[0].upper()}{check.rule[1:]}.", indent="  ")
    screen.wrapped(check.why, indent="  ")


def show(screen: Screen, seen: Snapshot, found: Diagnosis) -> None:
    if not is_installed(found):
        (absent,) = found.findings
        screen.line(screen.paint(f"Not installed: {absent.got}. See docs/install.md.", Colour.RED))
        return
    for severity in FindingSeverity:
        of_it = [each for each in found.findings if each.severity is severity]
        for _, findings in groupby(of_it, key=lambda each: each.check):
            _show_check(screen, list(findings), found.consequences)
    looked = f"{len(CHECKS)} checks of {counted(len(seen.nodes), 'node')} and {counted(seen.counted_pods, 'pod')}"
    if found.findings:
        screen.line(f"{summary(found)}: {looked}.")
    else:
        screen.line(screen.paint(f"Nothing is wrong: {looked}.", Colour.GREEN))


def _show_check(screen: Screen, findings: Sequence[Finding], consequences: Sequence[Finding]) -> None:
    """Prints what several findings of a check have in common once, and what they explain by name."""
    first, last_fix = findings[0], ""
    screen.line(screen.paint(f"{first.severity}: {first.check}", _COLOURS[first.severity]))
    screen.wrapped(f"rule: {first.rule}", indent="  ", hanging="  ")
    for each in findings[:_MOST_OF_A_CHECK]:
        where, got = printable(each.where, _WORDS_CHARS), printable(each.got, _WORDS_CHARS)
        screen.wrapped(f"{where}: {got}", indent="  ", hanging="  ")
        if each.fix != last_fix:
            screen.wrapped(f"fix: {each.fix}", indent="    ", hanging="  ")
        if each.command:
            _show_command(screen, each.command)
        last_fix = each.fix
    if (more := len(findings) - _MOST_OF_A_CHECK) > 0:
        screen.line(screen.paint(f"  … and {more} more; -o json lists all", Colour.DIM))
    if explained := dict.fromkeys(each.check for each in consequences if each.cause == first.check):
        screen.wrapped(f"this explains: {', '.join(explained)}", indent="  ", hanging="  ", colour=Colour.DIM)
    screen.line()


def _show_command(screen: Screen, command: str) -> None:
    """Breaks a long command between words, so that a shell accepts it unchanged."""
    line = "     "
    for word in command.split():
        if len(line) + len(word) + len("  \\") > WIDTH:
            screen.line(f"{line} \\")
            line = "         "
        line += f" {word}"
    screen.line(line)
