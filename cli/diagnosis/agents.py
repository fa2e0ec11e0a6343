"""Checks that every labelled node has an agent, and that nodes offer what their cards allow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Final

from halfcard import names
from halfcard.problems import printable

from .finding import BROKEN, NOTE, WARNING, Check, FoundFault, several
from .snapshot import NodeSnapshot, Snapshot

_RECENT: Final = timedelta(hours=1)
"""An agent repeats its Event NotOffered every half hour."""

_LABELLED: Final = f"{names.AGENT_LABEL}=true"
_DRIVER: Final = "DriverUnavailable"
_LOOK: Final = f"kubectl -n {names.NAMESPACE} get pods -o wide"


def is_to_have_agent(node: NodeSnapshot) -> bool:
    return node.labels.get(names.AGENT_LABEL) == "true"


def _missing(snapshot: Snapshot) -> Iterator[FoundFault]:
    with_pod = _with_agents_pod(snapshot)
    by_daemon = any(each.kind == "DaemonSet" and each.account == names.AGENT for each in snapshot.workloads)
    for node in filter(is_to_have_agent, snapshot.nodes):
        if node.cards is None or not node.condition:
            got = f"{_LABELLED}, but no agent has written its cards"
        elif by_daemon and node.name not in with_pod:
            got = f"{_LABELLED}, but no pod of the agent"
        else:
            continue
        yield FoundFault(
            f"node {node.name}", got, "check why the agent does not run there", f"kubectl describe node {node.name}"
        )


def _with_agents_pod(snapshot: Snapshot) -> set[str]:
    return {pod.node for pod in snapshot.own_pods if pod.account == names.AGENT}


def _offers_nothing(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks that nodes offer cards: kubelet removes the resources of an agent that does not run."""
    offered = snapshot.settings.advertised_resources()
    for node in filter(is_to_have_agent, snapshot.nodes):
        if node.cards and not any(node.offers.get(resource) for resource in offered):
            got = f"{node.cards} healthy cards, but pods may have 0 of {', '.join(offered)}"
            yield FoundFault(
                f"node {node.name}", got, "read in its log whether the agent is registered with kubelet", _LOOK
            )


def _conditions(snapshot: Snapshot, *, driver: bool) -> Iterator[FoundFault]:
    for node in snapshot.nodes:
        reason, words = node.condition.get("reason"), node.condition.get("message", "")
        if node.condition.get("status") == "False" and (reason == _DRIVER) is driver:
            fix = "check the driver on the node (`nvidia-smi`)"
            yield FoundFault(f"node {node.name}", printable(words), fix, f"kubectl describe node {node.name}")


def _without_agent(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Reports all nodes without an agent in one finding: while nodes are switched one by one, there may be many."""
    words = snapshot.settings.enabled_dialects().resources
    found = [node.name for node in snapshot.nodes if not is_to_have_agent(node) and node.cards is None]
    gpus = {node.name for node in snapshot.nodes if any(node.offers.get(resource) for resource in words)}
    if having := [name for name in found if name in gpus]:
        fix = "label them for Halfcard's agent; or leave them, if another system's agent stays there"
        command = f"kubectl label node {having[0]} {_LABELLED}"
        yield FoundFault(several(having, "node"), "offers GPUs without Halfcard's agent", fix, command)


def _left_behind(snapshot: Snapshot) -> Iterator[FoundFault]:
    with_pod = _with_agents_pod(snapshot)
    for node in snapshot.nodes:
        if node.cards is not None and not is_to_have_agent(node) and node.name not in with_pod:
            got = f"an inventory of {node.cards} healthy cards, but no label {_LABELLED}"
            command = f"kubectl annotate node {node.name} {names.INVENTORY}-"
            yield FoundFault(f"node {node.name}", got, "add the label again, or remove the inventory", command)


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
        "agent-missing",
        BROKEN,
        "a node with the agent's label has an agent that publishes its cards",
        "Otherwise its cards are unknown, and no pod that requests cards starts there.",
        _missing,
    ),
    Check(
        "agent-unregistered",
        BROKEN,
        "a node with healthy cards offers some of them",
        "Kubelet offers nothing while its connection to the agent is lost, and new pods wait.",
        _offers_nothing,
        unless=("not-offered",),
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
        "not-offered",
        BROKEN,
        "the agent offers the resources of the setting `node_resources`",
        "Usually another plugin serves the same resource on the node. The agent reports it in Events `NotOffered`.",
        _not_offered,
    ),
    Check(
        "node-without-agent",
        NOTE,
        "a node that offers GPUs has Halfcard's agent",
        "Without it, the cards are known only from the node's amounts and labels, and Halfcard does not allocate them.",
        _without_agent,
    ),
    Check(
        "inventory-left-behind",
        WARNING,
        "only a node with an agent has an inventory",
        "The extender uses it, but it is no longer updated.",
        _left_behind,
    ),
    Check(
        "node-left-out",
        BROKEN,
        "what a node publishes about its cards is consistent",
        "An inconsistent node gets no pod that requests cards.",
        _left_out,
    ),
)
