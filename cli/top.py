"""`halfcard top`: the current usage of cards as the nodes' agents measure it, read through the API server."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from deviceplugin.usage.usage_report import NodeUsageReport
from deviceplugin.usage.usage_text import CONTAINER_HEADS, container_rows, known, remarks, usage_text
from halfcard.claims import WHOLE_CARD
from halfcard.exit_codes import EXIT_OK

from .inputs.agent_usage import PORT_ADVICE, SilentAgent, ask_agents
from .inputs.cluster_state import add_access_arguments, find_access
from .inputs.namespace_choice import add_namespace_arguments
from .inspect import tally, warn
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Colour, Screen

_NODE_HEADS: Final = ("NODE", "CARDS", "CORES %", "MEMORY MiB", "CONTAINERS")
_NODE_LEGEND: Final = "cores and memory: used/given/total"
_POD_HEADS: Final = ("CONTAINER@NODE", *CONTAINER_HEADS[1:])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=("nodes", "pods"), default="nodes", help="default %(default)s")
    parser.add_argument("--node", metavar="NAME", help="only this one, card by card")
    add_namespace_arguments(parser, "only its pods (default: all namespaces)")
    add_access_arguments(parser)
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    answers = ask_agents(find_access(arguments), arguments.node)
    usages = [_within(each, arguments.namespace) for each in answers if isinstance(each, NodeUsageReport)]
    silent = [each for each in answers if isinstance(each, SilentAgent)]
    if arguments.output != TEXT:
        print_document(arguments.output, msgspec.to_builtins({"nodes": usages, "silent": silent}))
        return EXIT_OK
    warn([*map(str, silent), *([PORT_ADVICE] if any(not each.is_reached for each in silent) else [])])
    _print(Screen.on(sys.stdout), usages, arguments)
    return EXIT_OK


def _within(usage: NodeUsageReport, namespace: str | None) -> NodeUsageReport:
    if namespace is None:
        return usage
    return replace(usage, containers=tuple(each for each in usage.containers if each.namespace == namespace))


# --- printing --------------------------------------------------------------------------------------------------------


def _print(screen: Screen, usages: Sequence[NodeUsageReport], arguments: argparse.Namespace) -> None:
    if not usages:
        screen.line("no node has an agent")
    elif arguments.what == "pods":
        _print_pods(screen, usages)
    elif arguments.node:
        screen.stream.write(usage_text(usages[0]))
    else:
        screen.headed_table([_NODE_HEADS, *map(_node_row, usages)], right=(2, 3, 4))
        screen.line(screen.paint(_NODE_LEGEND, Colour.DIM))
        warn([f"{usage.node}: {remark}" for usage in usages for card in usage.cards for remark in remarks(card)])


def _print_pods(screen: Screen, usages: Sequence[NodeUsageReport]) -> None:
    found = ((each, usage.node) for usage in usages for each in usage.containers)
    placed = sorted(found, key=lambda pair: pair[0].title)
    if not placed:
        return screen.line("no container has cards")
    rows = [(f"{row[0]}@{node}", *row[1:]) for each, node in placed for row in container_rows([each])]
    return screen.headed_table([_POD_HEADS, *rows], right=(2, 3))


def _node_row(usage: NodeUsageReport) -> tuple[str, ...]:
    cards = usage.cards
    total_mib = _sum(card.total_mib for card in cards)
    return (
        usage.node,
        tally([(card.mode, card.why_not) for card in cards]) + (", made up" if usage.is_made_up else ""),
        f"{_sum(card.used_cores for card in cards)}/{sum(card.cores for card in cards)}/{WHOLE_CARD * len(cards)}",
        f"{_sum(card.used_mib for card in cards)}/{sum(card.memory_mib for card in cards)}/{total_mib}",
        str(len(usage.containers)),
    )


def _sum(amounts: Iterable[int | None]) -> str:
    """Returns None if one of the numbers is unknown."""
    found = list(amounts)
    known_ones = [amount for amount in found if amount is not None]
    return known(sum(known_ones) if len(known_ones) == len(found) else None)
