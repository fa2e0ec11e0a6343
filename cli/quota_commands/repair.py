"""`halfcard quota repair`: makes ResourceQuotas count that Kubernetes accepted and never counts."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from halfcard.dialects import Dialects
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED
from halfcard.quantity import InvalidQuantity
from halfcard.quota.native_quota import ResourceQuota, resource_of
from halfcard.quota.native_usage import in_use
from kube.api.calls import ApiCalls, NoAnswerError
from kube.quota.native_quota_repair import Repair, repair
from kube.quota.native_quota_source import ReadError, pods_in, quotas_anywhere, quotas_in
from settings.settings_file import load_settings

from ..inputs.cluster_state import add_access_arguments, ask
from ..inputs.namespace_choice import add_namespace_arguments
from ..output.structured import TEXT, add_output_argument, print_document
from ..output.terminal import Colour, Screen

SUMMARY: Final = "make ResourceQuotas count that Kubernetes accepted but never counts"


class Repaired(NamedTuple):
    """A repaired quota, and the usage that it did not count until now; empty if unknown."""

    repair: Repair
    in_use: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.repair.title,
            "done": self.repair.done,
            "why_not": self.repair.why_not,
            "in_use": self.in_use,
        }


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of a command that changes ResourceQuotas: which ones, and whether only as a dry run."""
    add_namespace_arguments(parser, "only its quotas (default: all namespaces)", positional=True)
    parser.add_argument(
        "--dry-run", action="store_true", help="change nothing; exit code 1 if something would be changed"
    )
    add_access_arguments(parser)


async def selected(calls: ApiCalls, arguments: argparse.Namespace) -> Sequence[ResourceQuota]:
    namespace = arguments.namespace
    return await (quotas_in(calls, namespace) if namespace else quotas_anywhere(calls))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    parser.add_argument("--settings", type=Path, metavar="FILE", help="the installation's settings")
    add_output_argument(parser)
    parser.set_defaults(does=run)


def run(arguments: argparse.Namespace) -> int:
    dialects = load_settings(arguments.settings).enabled_dialects()
    found = ask(arguments, lambda calls: _repaired(calls, arguments, dialects))
    if arguments.output != TEXT:
        document = {"dry_run": arguments.dry_run, "quotas": [each.as_json() for each in found]}
        print_document(arguments.output, document)
    else:
        _print(Screen.on(sys.stdout), found, rehearsed=arguments.dry_run)
    silent = [each for each in found if each.repair.why_not or arguments.dry_run]
    return EXIT_REFUSED if silent else EXIT_OK


async def _repaired(calls: ApiCalls, arguments: argparse.Namespace, dialects: Dialects) -> list[Repaired]:
    uncounted = [each for each in await selected(calls, arguments) if each.uncounted(dialects.resources)]
    return [await _one(calls, each, dialects, rehearse=arguments.dry_run) for each in uncounted]


async def _one(calls: ApiCalls, quota: ResourceQuota, dialects: Dialects, *, rehearse: bool) -> Repaired:
    done = await repair(calls, quota, dialects, rehearse=rehearse)
    silent = frozenset(resource_of(key) for key in quota.uncounted(dialects.resources))
    try:
        found = in_use(quota, await pods_in(calls, quota.meta.namespace or ""), silent, time.time())
    except (InvalidQuantity, ReadError, NoAnswerError):
        return Repaired(done, {})
    return Repaired(done, {resource: str(amount) for resource, amount in sorted(found.items())})


def _print(screen: Screen, found: Sequence[Repaired], *, rehearsed: bool) -> None:
    if not found:
        screen.line("every ResourceQuota counts its GPU resources")
    for each in found:
        screen.line(screen.paint(each.repair.title, Colour.BOLD))
        for line in _lines(each, rehearsed=rehearsed):
            screen.wrapped(line, indent="  ", hanging="  ", colour=Colour.RED if each.repair.why_not else None)


def _lines(found: Repaired, *, rehearsed: bool) -> Iterable[str]:
    if found.repair.why_not:
        return [f"still does not count: {found.repair.why_not}"]
    used = ", ".join(f"{resource}={amount}" for resource, amount in found.in_use.items())
    done = [f"dry run: {each}" if rehearsed else each for each in found.repair.done]
    return [*done, *([f"in use: {used}"] if used else [])]
