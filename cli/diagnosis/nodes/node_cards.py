"""Checks that nodes offer what their cards allow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Final

from halfcard import names
from halfcard.problems import printable

from ..causes import NOT_ON_NODE, NOT_WORKING
from ..finding import BROKEN, WARNING, Check, FoundFault
from ..snapshot import Snapshot
from .agents import LOGS, is_to_have_agent

_RECENT: Final = timedelta(hours=1)
"""An agent repeats its Event NotOffered every half hour."""

_DRIVER: Final = "DriverUnavailable"
_NOT_HELD: Final = "SharesNotHeld"


def _offers_nothing(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks that nodes offer cards: kubelet removes the resources of an agent that does not run."""
    offered = snapshot.settings.advertised_resources()
    for node in filter(is_to_have_agent, snapshot.nodes):
        if node.cards and not any(node.offers.get(resource) for resource in offered):
            got = f"{node.cards} healthy cards, but pods may have 0 of {', '.join(offered)}"
            fix = "its agent's log says whether it is registered with kubelet"
            yield FoundFault(f"node {node.name}", got, fix, LOGS, f"{names.AGENT}/{node.name}")


def _conditions(snapshot: Snapshot, *, driver: bool) -> Iterator[FoundFault]:
    for node in snapshot.nodes:
        reason, words = node.condition.get("reason"), node.condition.get("message", "")
        if node.condition.get("status") == "False" and (reason == _DRIVER) is driver:
            fix = "check the driver on the node (`nvidia-smi`)"
            command = f"kubectl describe node {node.name}"
            yield FoundFault(f"node {node.name}", printable(words), fix, command, f"{names.AGENT}/{node.name}")


def _not_held(snapshot: Snapshot) -> Iterator[FoundFault]:
    for node in snapshot.nodes:
        if node.isolation.get("reason") == _NOT_HELD:
            fix = f"docs/isolation.md says what a node needs; the label {names.ISOLATION_LABEL}=off keeps isolation off"
            command = f"kubectl describe node {node.name}"
            yield FoundFault(f"node {node.name}", printable(node.isolation.get("message", "")), fix, command)


def _not_offered(snapshot: Snapshot) -> Iterator[FoundFault]:
    recent = [each for each in snapshot.not_offered if snapshot.now - each.last < _RECENT]
    in_order = sorted(recent, key=lambda each: (each.last, each.is_over))
    last = {(each.node, each.message): each.is_over for each in in_order}
    for node, message in [said for said, is_over in last.items() if not is_over]:
        fix = "one plugin serves a resource on a node: stop the other one, or remove the resource from `node_resources`"
        yield FoundFault(f"node {node}", printable(message), fix, f"kubectl describe node {node}")


def _left_out(snapshot: Snapshot) -> Iterator[FoundFault]:
    for doubt in snapshot.doubts:
        if doubt.startswith("node "):
            where, _, why = doubt.partition(" is left out: ")
            fix = "correct what the node publishes, or its inventory: until then it gets no pod that requests cards"
            yield FoundFault(where, why, fix)


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "agent-unregistered",
        BROKEN,
        "a node with healthy cards offers some of them",
        "Kubelet offers nothing while its connection to the agent is lost, and new pods wait.",
        _offers_nothing,
        unless=(*NOT_WORKING, *NOT_ON_NODE, "not-offered", "agent-missing"),
    ),
    Check(
        "driver-unavailable",
        BROKEN,
        "the driver answers the agent",
        "Otherwise no container with a card starts.",
        partial(_conditions, driver=True),
    ),
    Check(
        "cards-out-of-order",
        WARNING,
        "every card of a node is healthy",
        "An unhealthy card gets no new pods; containers on it stay.",
        partial(_conditions, driver=False),
    ),
    Check(
        "shares-not-held",
        WARNING,
        "where isolation is on, a node can hold containers to their shares",
        "Containers of shares start there without a limit; with `isolation: enforce` the node gets no shares.",
        _not_held,
    ),
    Check(
        "not-offered",
        BROKEN,
        "the agent offers the resources of the setting `node_resources`",
        "Usually another plugin serves the same resource on the node. The agent reports it in Events `NotOffered`.",
        _not_offered,
    ),
    Check(
        "node-left-out",
        BROKEN,
        "what a node publishes about its cards is consistent",
        "An inconsistent node gets no pod that requests cards.",
        _left_out,
    ),
)
