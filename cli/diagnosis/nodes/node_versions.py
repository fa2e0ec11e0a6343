"""Checks that Kubernetes, container runtimes and processors are those that docs/install.md supports."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from deviceplugin.inject.cdi import runtime_supports_cdi, without_cdi
from halfcard import names

from ..finding import BROKEN, NOTE, WARNING, Check, FoundFault, several
from ..snapshot import NodeSnapshot, Snapshot
from .agents import is_to_have_agent


class MinorVersion(NamedTuple):
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


OLDEST: Final = MinorVersion(1, 34)
NEWEST_TESTED: Final = MinorVersion(1, 36)
TESTED_RUNTIME: Final = "containerd"
ARCHITECTURE: Final = "amd64"

_VERSION: Final = re.compile(r"v(?P<major>\d+)\.(?P<minor>\d+)")
_RUNTIME: Final = re.compile(r"(?P<name>[a-z-]+)://\d")
_PAGE: Final = "docs/install.md lists what is tested"
_NODES: Final = "kubectl get nodes -o wide"


def minor_version(written: str) -> MinorVersion | None:
    """Reads `v1.36.0`; None for what is no version of Kubernetes, such as that of a simulated node."""
    match = _VERSION.match(written)
    return MinorVersion(int(match["major"]), int(match["minor"])) if match else None


def _programs(snapshot: Snapshot) -> Iterator[tuple[str, str, MinorVersion]]:
    """Yields the API server, and the kubelets of nodes with an agent: where, which version as written, and as read."""
    nodes = defaultdict(list)
    for node in filter(is_to_have_agent, snapshot.nodes):
        nodes[node.system.kubelet].append(node.name)
    kubelets = [(f"kubelet of {several(found, 'node')}", version) for version, found in sorted(nodes.items())]
    for where, version in (("the API server", snapshot.api_server), *kubelets):
        if read := minor_version(version):
            yield where, version, read


def _old(snapshot: Snapshot) -> Iterator[FoundFault]:
    for where, version, read in _programs(snapshot):
        if read < OLDEST:
            yield FoundFault(where, version, f"upgrade it to {OLDEST} or newer; {_PAGE}", _NODES)


def _untested(snapshot: Snapshot) -> Iterator[FoundFault]:
    for where, version, read in _programs(snapshot):
        if read > NEWEST_TESTED:
            yield FoundFault(where, version, f"try it before you rely on it; {_PAGE}", _NODES)
    others = [node for node in filter(is_to_have_agent, snapshot.nodes) if _is_other_runtime(node)]
    for node in others:
        if runtime_supports_cdi(node.system.runtime):
            yield FoundFault(f"node {node.name}", node.system.runtime, f"try it before you rely on it; {_PAGE}", _NODES)


def _is_other_runtime(node: NodeSnapshot) -> bool:
    match = _RUNTIME.match(node.system.runtime)
    return match is not None and match["name"] != TESTED_RUNTIME


def _without_cdi(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks nodes whose agent does not work: with --without-cdi an older runtime will do."""
    working = {pod.node for pod in snapshot.own_pods if pod.account == names.AGENT and pod.is_ready}
    for node in filter(is_to_have_agent, snapshot.nodes):
        runtime = node.system.runtime
        if node.name not in working and _RUNTIME.match(runtime) and not runtime_supports_cdi(runtime):
            got, _, fix = without_cdi(runtime).removeprefix("got ").rpartition("; ")
            yield FoundFault(f"node {node.name}", got, fix, "", _agent(node))


def _agent(node: NodeSnapshot) -> str:
    return f"{names.AGENT}/{node.name}"


def _other_processor(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Checks nodes with a pod of Halfcard, and those that are to have an agent."""
    there = {pod.node: pod.subject for pod in snapshot.own_pods}
    for node in snapshot.nodes:
        subject = _agent(node) if is_to_have_agent(node) else there.get(node.name)
        if subject and node.system.architecture not in ("", ARCHITECTURE):
            fix = f"keep Halfcard off this node by the nodeSelector `kubernetes.io/arch: {ARCHITECTURE}`"
            got = f"{node.system.architecture}; the image is made for {ARCHITECTURE}"
            yield FoundFault(f"node {node.name}", got, fix, _NODES, subject)


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "version-unsupported",
        WARNING,
        f"the API server, and kubelet on nodes with an agent, are of Kubernetes {OLDEST} or newer",
        "Older versions are not tested, and lack what Halfcard needs.",
        _old,
    ),
    Check(
        "version-untested",
        NOTE,
        f"Kubernetes is no newer than {NEWEST_TESTED}, and the runtime of nodes with an agent is {TESTED_RUNTIME}",
        "Others may work, but were never tested.",
        _untested,
    ),
    Check(
        "runtime-unsupported",
        BROKEN,
        "the container runtime of a node with an agent supports CDI, or the agent runs with --without-cdi",
        "The agent refuses to start: containers would have no cards.",
        _without_cdi,
    ),
    Check(
        "architecture-unsupported",
        BROKEN,
        f"nodes with a pod of Halfcard have {ARCHITECTURE} processors",
        "The image has no programs for others.",
        _other_processor,
    ),
)
