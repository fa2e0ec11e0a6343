"""`halfcard inspect`: the cards of the cluster, and which pods use them."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from extender.explain.inspection import Amount, CardInspection, NodeInspection, gpushare_json, inspect
from halfcard.exit_codes import EXIT_OK, UnusableInputError
from halfcard.placing.card_usage import CardMode

from .inputs.cluster_state import ClusterState, NoClusterError, read_cluster
from .inputs.cluster_state import add_arguments as add_source
from .inputs.namespace_choice import add_namespace_arguments
from .output import gpushare_table
from .output.shares import share
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Colour, Screen

_MOST_WARNINGS: Final = 20
OUT_OF_ORDER: Final = "out of order"
_COLOURS: Final = {CardMode.FREE: Colour.GREEN, CardMode.EXCLUSIVE: Colour.BLUE}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", nargs="?", metavar="NODE", help="only this one")
    parser.add_argument("-d", "--details", action="store_true", help="each card, and the pods on it")
    add_namespace_arguments(parser, "only its pods (default: all namespaces)")
    add_source(parser)
    parser.add_argument(
        "--format", choices=("table", "gpushare"), default="table", help="gpushare: as kubectl-inspect-gpushare prints"
    )
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.namespace and arguments.format == "gpushare":
        raise UnusableInputError("got -n and --format gpushare, which always shows all pods; leave out one of them")
    cluster = read_cluster(arguments)
    nodes = [_within(node, arguments.namespace) for node in _nodes(cluster, arguments.node)]
    if arguments.output != TEXT:
        print_document(arguments.output, _as_json(cluster, nodes, arguments.format))
        return EXIT_OK
    warn(cluster.doubts())
    if arguments.format == "gpushare":
        print(gpushare_table.render(nodes, cluster.aliyun_unit_mib, details=arguments.details), end="")
    else:
        _print(Screen.on(sys.stdout), nodes, details=arguments.details or bool(arguments.node))
    return EXIT_OK


def inspect_folder(state: Path, node: str) -> NodeInspection:
    """Returns a node of a folder of manifests."""
    (found,) = _nodes(read_cluster(argparse.Namespace(state=state, settings=None)), node)
    return found


def _as_json(cluster: ClusterState, nodes: Sequence[NodeInspection], form: str) -> dict[str, Any]:
    if form == "gpushare":
        known = cluster.state.nodes()
        return gpushare_json(cluster.state, [known[node.name] for node in nodes], cluster.aliyun_unit_mib)
    return {"nodes": msgspec.to_builtins(nodes), "doubts": list(cluster.doubts())}


def _nodes(cluster: ClusterState, wanted: str | None) -> list[NodeInspection]:
    known = cluster.state.nodes()
    if wanted is not None and wanted not in known:
        raise NoClusterError(
            f"node {wanted} does not exist, or its cards are implausible; `halfcard inspect` lists the nodes"
        )
    return [inspect(cluster.state, known[name], cluster.table) for name in ([wanted] if wanted else sorted(known))]


def _within(node: NodeInspection, namespace: str | None) -> NodeInspection:
    """Returns the node with only the pods of a namespace; its cards are used by all pods."""
    if namespace is None:
        return node
    cards = [replace(card, pods=tuple(pod for pod in card.pods if pod.namespace == namespace)) for card in node.cards]
    without_card = [title for title in node.without_card if title.startswith(f"{namespace}/")]
    return replace(node, cards=tuple(cards), without_card=tuple(without_card))


def warn(doubts: Sequence[str]) -> None:
    """Prints inconsistencies to standard error; the JSON has all of them."""
    screen = Screen.on(sys.stderr)
    for doubt in doubts[:_MOST_WARNINGS]:
        screen.wrapped(f"Warning: {doubt}", indent="", hanging="  ", colour=Colour.YELLOW)
    if len(doubts) > _MOST_WARNINGS:
        screen.line(f"Warning: {len(doubts) - _MOST_WARNINGS} more of these; -o json lists all")


def _print(screen: Screen, nodes: Sequence[NodeInspection], *, details: bool) -> None:
    with_cards = [node for node in nodes if node.cards or node.without_card or node.driver]
    if details:
        for number, node in enumerate(with_cards):
            if number:
                screen.line()
            print_node(screen, node)
    elif with_cards:
        screen.headed_table(list(_overview(with_cards)), right=(2, 3, 4))
    if bare := len(nodes) - len(with_cards):
        screen.line(screen.paint(f"{bare} {'node has' if bare == 1 else 'nodes have'} no GPU", Colour.DIM))


def _overview(nodes: Iterable[NodeInspection]) -> Iterator[tuple[str, ...]]:
    yield "NODE", "CARDS", "CORES %", "MEMORY MiB", "PODS"
    for node in nodes:
        cores, memory = _sum(card.cores for card in node.cards), _sum(card.memory_mib for card in node.cards)
        yield node.name, _modes(node), of(cores), of(memory), str(node.pods)


def _modes(node: NodeInspection) -> str:
    return f"of {node.driver}" if node.driver else tally([(card.mode, card.out_of_order) for card in node.cards])


def tally(cards: Sequence[tuple[CardMode, str]]) -> str:
    """Counts modes and reasons, as `4: 1 shared, 3 free`."""
    counted = Counter(OUT_OF_ORDER if why_not else str(mode) for mode, why_not in cards)
    order = [
        *map(str, (CardMode.SHARED, CardMode.HALVES, CardMode.SLICES, CardMode.EXCLUSIVE, CardMode.FREE)),
        OUT_OF_ORDER,
    ]
    return f"{len(cards)}: " + ", ".join(f"{counted[mode]} {mode}" for mode in order if counted[mode])


def _sum(amounts: Iterable[Amount]) -> Amount:
    found = list(amounts)
    known = [amount.total for amount in found if amount.total is not None]
    return Amount(sum(known) if known else None, sum(amount.used for amount in found))


def of(amount: Amount) -> str:
    return f"{amount.used}/{'?' if amount.total is None else amount.total}"


# --- one node in detail ----------------------------------------------------------------------------------------------


def print_node(screen: Screen, node: NodeInspection) -> None:
    screen.wrapped(f"{node.name}  {node.address}".rstrip(), indent="", hanging="  ", colour=Colour.BOLD)
    for resource, amount in node.resources.items():
        screen.line(f"  {resource}: {amount.total} ({amount.used} in use)")
    for card in node.cards:
        _print_card(screen, card)
    if node.driver:
        screen.wrapped(f"cards of {node.driver}, which kube-scheduler allocates (DRA)", indent="  ")
    for title in node.without_card:
        where, colour = ("", None) if node.driver else ("no card  ", Colour.YELLOW)
        screen.wrapped(f"{where}{title}", indent="  ", colour=colour)


def _print_card(screen: Screen, card: CardInspection) -> None:
    name = "" if card.name == str(card.index) else card.name
    amounts = f"{of(card.cores)} %  {of(card.memory_mib)} MiB"
    state = str(card.mode) + (f" {of(card.parts)}" if card.parts.total else "")
    words = [f"card {card.index}", card.model, name, state, amounts]
    colour = Colour.RED if card.out_of_order else _COLOURS.get(card.mode)
    screen.wrapped("  ".join(filter(None, words)), indent="  ", hanging="    ", colour=colour)
    if card.out_of_order:
        screen.wrapped(f"gets no new pods: {card.out_of_order}", indent="    ", hanging="  ", colour=Colour.RED)
    rows = [(pod.title, share(pod) + ("" if pod.recorded else "  not recorded: guessed")) for pod in card.pods]
    screen.table(rows, indent="    ")
