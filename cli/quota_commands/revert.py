"""`halfcard quota revert`: restores ResourceQuotas as people wrote them, once Halfcard is removed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from halfcard import names
from halfcard.exit_codes import EXIT_OK, EXIT_REFUSED
from kube.api.calls import ApiCalls
from kube.quota.native_quota_repair import Repair, revert

from ..inputs.cluster_state import ask
from ..output.structured import TEXT, add_output_argument, print_document
from ..output.terminal import Colour, Screen
from .repair import add_selection, selected

SUMMARY: Final = "remove the keys that Halfcard added to ResourceQuotas, once it is removed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_selection(parser)
    add_output_argument(parser)
    parser.set_defaults(does=run)


def run(arguments: argparse.Namespace) -> int:
    found = ask(arguments, lambda calls: _reverted(calls, arguments))
    if arguments.output != TEXT:
        document = {"dry_run": arguments.dry_run, "quotas": [_as_json(each) for each in found]}
        print_document(arguments.output, document)
    else:
        _print(Screen.on(sys.stdout), found, rehearsed=arguments.dry_run)
    left = [each for each in found if each.why_not or arguments.dry_run]
    return EXIT_REFUSED if left else EXIT_OK


async def _reverted(calls: ApiCalls, arguments: argparse.Namespace) -> list[Repair]:
    marked = [each for each in await selected(calls, arguments) if names.QUOTA_TWINS in each.annotations]
    return [await revert(calls, each, rehearse=arguments.dry_run) for each in marked]


def _as_json(found: Repair) -> dict[str, object]:
    return {"name": found.title, "done": found.done, "why_not": found.why_not}


def _print(screen: Screen, found: Sequence[Repair], *, rehearsed: bool) -> None:
    if not found:
        screen.line("Halfcard has added nothing to any ResourceQuota")
    for each in found:
        screen.line(screen.paint(each.title, Colour.BOLD))
        if each.why_not:
            screen.wrapped(f"not changed: {each.why_not}", indent="  ", hanging="  ", colour=Colour.RED)
        for done in each.done:
            screen.wrapped(f"dry run: {done}" if rehearsed else done, indent="  ", hanging="  ")
