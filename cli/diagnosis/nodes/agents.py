"""Checks that every labelled node has an agent, and only those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halfcard import names

from ..causes import NOT_ON_NODE, NOT_WORKING
from ..finding import BROKEN, NOTE, WARNING, Check, FoundFault, several
from ..own_objects import Taint, WorkloadSnapshot
from ..snapshot import NodeSnapshot, Snapshot

_LABELLED: Final = f"{names.AGENT_LABEL}=true"
LOGS: Final = f"kubectl -n {names.NAMESPACE} logs -l {names.NAME_LABEL}={names.AGENT} --prefix"
_DESCRIBE: Final = f"kubectl -n {names.NAMESPACE} describe daemonset {names.AGENT}"
_READ_LOG: Final = "the log of the agent on that node says why"
_LET_IN: Final = (
    "let it in, by the chart's value `agent.tolerations` or the label; else its events say why there is none"
)
_PREFERENCE: Final = "PreferNoSchedule"
_OWN_TAINTS: Final = "node.kubernetes.io/"


def is_to_have_agent(node: NodeSnapshot) -> bool:
    return node.labels.get(names.AGENT_LABEL) == "true"


def _missing(snapshot: Snapshot) -> Iterator[FoundFault]:
    with_pod, daemon = _with_agents_pod(snapshot), _daemon(snapshot)
    for node in filter(is_to_have_agent, snapshot.nodes):
        if daemon is not None and node.name not in with_pod:
            got, fix = f"{_LABELLED}, but no pod of the agent{_kept_off(node, daemon)}", _LET_IN
        elif node.cards is None or not node.condition:
            got, fix = f"{_LABELLED}, but no agent has written its cards", _READ_LOG
        else:
            continue
        command = LOGS if fix == _READ_LOG else _DESCRIBE
        yield FoundFault(f"node {node.name}", got, fix, command, f"{names.AGENT}/{node.name}")


def _daemon(snapshot: Snapshot) -> WorkloadSnapshot | None:
    ours = (each for each in snapshot.workloads if each.kind == "DaemonSet" and each.account == names.AGENT)
    return next(ours, None)


def _kept_off(node: NodeSnapshot, daemon: WorkloadSnapshot) -> str:
    """Names what keeps the DaemonSet's pod off: a taint that it does not tolerate, or a label that it needs."""
    taints = [each for each in node.taints if each.effect != _PREFERENCE and not _is_tolerated(each, daemon)]
    labels = [f"{key}={value}" for key, value in daemon.selector if node.labels.get(key) != value]
    kept = [
        *(f"the taint {each} is not tolerated" for each in taints),
        *(f"it lacks the label {each}" for each in labels),
    ]
    return f": {', '.join(kept)}" if kept else ""


def _is_tolerated(taint: Taint, daemon: WorkloadSnapshot) -> bool:
    """The DaemonSet controller adds tolerations for the taints of Kubernetes itself."""
    return taint.key.startswith(_OWN_TAINTS) or any(each.tolerates(taint) for each in daemon.tolerations)


def _mislabelled(snapshot: Snapshot) -> Iterator[FoundFault]:
    for node in snapshot.nodes:
        value = node.labels.get(names.AGENT_LABEL)
        if value is not None and value not in ("true", "false"):
            got = f"{names.AGENT_LABEL}={value}"
            command = f"kubectl label node {node.name} {_LABELLED} --overwrite"
            yield FoundFault(f"node {node.name}", got, "write true, or remove the label", command)


def _nowhere(snapshot: Snapshot) -> Iterator[FoundFault]:
    daemon = _daemon(snapshot)
    if daemon is not None and not any(map(is_to_have_agent, snapshot.nodes)):
        fix = "label the nodes that Halfcard should serve; or leave it, if another system's agent serves them"
        yield FoundFault(str(daemon), f"no node has the label {_LABELLED}", fix, f"kubectl label node NODE {_LABELLED}")


def _with_agents_pod(snapshot: Snapshot) -> set[str]:
    return {pod.node for pod in snapshot.own_pods if pod.account == names.AGENT}


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


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "agent-missing",
        BROKEN,
        "a node with the agent's label has an agent that publishes its cards",
        "Otherwise its cards are unknown, and no pod that requests cards starts there.",
        _missing,
        unless=(*NOT_WORKING, *NOT_ON_NODE),
    ),
    Check(
        "agent-label",
        WARNING,
        f"the label {names.AGENT_LABEL} of a node is true",
        "No agent runs on a node with another value.",
        _mislabelled,
    ),
    Check(
        "agent-nowhere",
        NOTE,
        "a node has the agent's label",
        "Until then GPU pods are checked, and Halfcard allocates no card.",
        _nowhere,
        unless=("agent-label", "node-without-agent"),
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
)
