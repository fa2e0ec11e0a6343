"""Checks that nodes with an agent are ready, and that their clocks are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halfcard import names
from halfcard.problems import printable

from ..finding import BROKEN, Check, FoundFault
from ..snapshot import Snapshot
from .agents import is_to_have_agent

_SKEW_S: Final = 60.0
"""Kubelet renews its Lease every 10 seconds, and a node that does not for 40 is no longer ready."""


def _not_ready(snapshot: Snapshot) -> Iterator[FoundFault]:
    for node in filter(is_to_have_agent, snapshot.nodes):
        if node.unready:
            fix = "start kubelet and the container runtime there, or read in their logs what they miss"
            command = f"kubectl describe node {node.name}"
            yield FoundFault(f"node {node.name}", printable(node.unready), fix, command, f"{names.AGENT}/{node.name}")


def _skewed(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Compares heartbeats of ready nodes, which the node controller judges by its own clock, with the API server's."""
    for node in snapshot.nodes:
        if node.clock is not None and not node.unready and abs(node.clock) > _SKEW_S:
            direction = "ahead of" if node.clock > 0 else "behind"
            got = f"its clock is {abs(node.clock):.0f} s {direction} that of the API server"
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
        "the clocks of nodes differ from that of the API server by less than a minute",
        "Otherwise certificates are not valid yet, or already expired, and Leases look abandoned or held forever.",
        _skewed,
    ),
)
