"""`halfcard top`: the current usage of cards as the nodes' agents measure it, read through the API server."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

import msgspec

from deviceplugin.usage.usage_json import read_usage
from deviceplugin.usage.usage_report import NodeUsageReport
from deviceplugin.usage.usage_text import CONTAINER_HEADS, container_rows, known, remarks, usage_text
from halfcard import names
from halfcard.claims import WHOLE_CARD
from halfcard.exit_codes import EXIT_OK
from halfcard.pod.spec import PodMetadata
from halfcard.problems import printable
from kube.api.access import Access
from kube.api.calls import ApiCalls, NoAnswerError
from kube.api.list_watch import ApiError
from kube.node_source import NODES

from .inputs.cluster_state import NoClusterError, add_access_arguments, everything, find_access
from .inputs.namespace_choice import add_namespace_arguments
from .inspect import tally, warn
from .output.structured import TEXT, add_output_argument, print_document
from .output.terminal import Colour, Screen

_AT_ONCE: Final = 16
_PATIENCE_S: Final = 5.0
_WHY_CHARS: Final = 200
_UNREACHED: Final = "error trying to reach service"  # how the API server begins
_PORT: Final = (
    f"the API server must reach port {names.AGENT_PORT} of the agents: check that their pods run, and that no"
    " NetworkPolicy and no firewall is between"
)
_PODS: Final = f"/api/v1/namespaces/{names.NAMESPACE}/pods"
_NO_AGENT: Final = (
    f"no pod in namespace {names.NAMESPACE} is an agent; agents without a pod are found by their nodes, which you may"
    " not list"
)
_NODE_HEADS: Final = ("NODE", "CARDS", "CORES %", "MEMORY MiB", "CONTAINERS")
_NODE_LEGEND: Final = "cores and memory: used/given/total"
_POD_HEADS: Final = ("CONTAINER@NODE", *CONTAINER_HEADS[1:])


class _Node(msgspec.Struct):
    metadata: PodMetadata


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: PodMetadata
    spec: _Spec

    @property
    def is_agent(self) -> bool:
        return bool(self.spec.node_name) and (self.metadata.labels or {}).get(names.NAME_LABEL) == names.AGENT


@dataclass(frozen=True, slots=True)
class SilentAgent:
    """A node whose agent did not answer; `is_reached` if something else did."""

    node: str
    why: str
    is_reached: bool = True

    def __str__(self) -> str:
        return f"{self.node}: its agent does not answer: {self.why}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=("nodes", "pods"), default="nodes", help="default %(default)s")
    parser.add_argument("--node", metavar="NAME", help="only this one, card by card")
    add_namespace_arguments(parser, "only its pods (default: all namespaces)")
    add_access_arguments(parser)
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    answers = _ask_agents(arguments)
    usages = [_within(each, arguments.namespace) for each in answers if isinstance(each, NodeUsageReport)]
    silent = [each for each in answers if isinstance(each, SilentAgent)]
    if arguments.output != TEXT:
        print_document(arguments.output, msgspec.to_builtins({"nodes": usages, "silent": silent}))
        return EXIT_OK
    warn([*map(str, silent), *([_PORT] if any(not each.is_reached for each in silent) else [])])
    _print(Screen.on(sys.stdout), usages, arguments)
    return EXIT_OK


# --- asking ----------------------------------------------------------------------------------------------------------


def _ask_agents(arguments: argparse.Namespace) -> Sequence[NodeUsageReport | SilentAgent]:
    access = find_access(arguments)
    answers = asyncio.run(_ask_all(access, _only(_agents(access), arguments.node)))
    if (
        answers
        and isinstance(answers[0], SilentAgent)
        and not any(isinstance(each, NodeUsageReport) for each in answers)
    ):
        advice = "" if answers[0].is_reached else f"; {_PORT}"
        raise NoClusterError(f"no agent answers; {answers[0]}{advice}")
    return answers


def _agents(access: Access) -> Mapping[str, str]:
    """Returns the path to the agent of each node: its pod, or the node where agents run without pods."""
    pods = (each for each in everything(access, _PODS, _Pod, []) if each.is_agent)
    if found := {each.spec.node_name: f"{_PODS}/{each.metadata.title}" for each in pods}:
        return dict(sorted(found.items()))
    try:
        nodes = [each.metadata for each in everything(access, NODES, _Node, [])]
    except ApiError:
        raise NoClusterError(_NO_AGENT) from None
    having = sorted(each.title for each in nodes if names.INVENTORY in (each.annotations or {}))
    return {node: f"{NODES}/{quote(node, safe='')}" for node in having}


def _only(agents: Mapping[str, str], wanted: str | None) -> Mapping[str, str]:
    if wanted is None:
        return agents
    if wanted not in agents:
        raise NoClusterError(f"node {wanted} does not exist, or has no agent; `halfcard top` lists those that have one")
    return {wanted: agents[wanted]}


async def _ask_all(access: Access, agents: Mapping[str, str]) -> list[NodeUsageReport | SilentAgent]:
    """Asks a few agents at a time; a node that hangs delays no others."""
    calls, turns = ApiCalls(access, _AT_ONCE), asyncio.Semaphore(_AT_ONCE)

    async def ask(node: str, path: str) -> NodeUsageReport | SilentAgent:
        async with turns:
            return await _ask(calls, node, f"{path}:{names.AGENT_PORT}/proxy")

    try:
        return await asyncio.gather(*(ask(*each) for each in agents.items()))
    finally:
        calls.close()


async def _ask(calls: ApiCalls, node: str, proxy: str) -> NodeUsageReport | SilentAgent:
    try:
        answer = await calls.get(f"{proxy}{names.USAGE_PATH}?output=json", _PATIENCE_S)
        if answer.status != 200:
            why = answer.message() or f"HTTP {answer.status}"
            return SilentAgent(node, printable(why, _WHY_CHARS), is_reached=_UNREACHED not in why)
        return replace(read_usage(answer.body), node=node)
    except NoAnswerError as error:
        return SilentAgent(node, printable(str(error), _WHY_CHARS), is_reached=False)
    except msgspec.MsgspecError as error:
        return SilentAgent(node, printable(f"the answer is not an agent's: {error}", _WHY_CHARS))


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
