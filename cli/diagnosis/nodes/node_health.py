"""Checks that nodes with an agent are ready, and that no clock of a node is ahead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halfcard import names
from halfcard.problems import printable

from ..finding import BROKEN, Check, FoundFault
from ..snapshot import Snapshot
from .agents import is_to_have_agent

_SKEW_S: Final = 60.0


def _not_ready(snapshot: Snapshot) -> Iterator[FoundFault]:
    for node in filter(is_to_have_agent, snapshot.nodes):
        if node.unready:
            fix = "start kubelet and the container runtime there, or read in their logs what they miss"
            command = f"kubectl describe node {node.name}"
            yield FoundFault(f"node {node.name}", printable(node.unready), fix, command, f"{names.AGENT}/{node.name}")


def _skewed(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Finds heartbeats of the future; an old one may also be of a node that sends none, so it proves nothing."""
    for node in snapshot.nodes:
        if node.clock is not None and node.clock > _SKEW_S:
            got = f"its clock is {node.clock:.0f} s ahead of that of the API server"
            fix = "synchronise the clocks, for example by chrony or systemd-timesyncd"
            yield FoundFault(f"node {node.name}", got, fix, f"kubectl -n kube-node-lease get lease {node.name} -o yaml")


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "node-not-ready",
        BROKEN,
        "a node with the agent's label is ready",
        "Kubelet or the container runtime does not work there: its agent and its GPU pods do not run.",
        _not_ready,
    ),
    Check(
        "clock-skew",
        BROKEN,
        "no clock of a node is more than a minute ahead of that of the API server",
        "Otherwise certificates that are made there are not valid yet, and Leases look held or abandoned. A clock that"
        " is behind is not seen: its heartbeats look like those of a node that sends none.",
        _skewed,
    ),
)
