"""Checks for other systems' programs that use the same cards.

A program is recognised by its image's own name, which stays when people copy it to another registry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from halfcard import names

from ..finding import NOTE, WARNING, Check, FoundFault, several
from ..own_objects import WorkloadSnapshot
from ..snapshot import Snapshot
from .agents import is_to_have_agent


class Peer(NamedTuple):
    """A node plugin: its system, and the resources that it offers."""

    system: str
    resources: frozenset[str]


_GPU_MANAGER: Final = Peer("gpu-manager", frozenset({names.VCUDA_CORE, names.VCUDA_MEMORY}))
_GPUSHARE: Final = Peer("gpushare", frozenset({names.ALIYUN_GPU_MEM, names.ALIYUN_GPU_COUNT}))
_VOLCANO: Final = Peer("Volcano", frozenset({names.VOLCANO_GPU_MEMORY, names.VOLCANO_GPU_NUMBER}))
_NVIDIA: Final = Peer("NVIDIA", frozenset({names.NVIDIA_GPU, names.NVIDIA_GPU_SHARED}))
_HAMI: Final = Peer("HAMi", frozenset({names.NVIDIA_GPU}))

PLUGINS: Final = {
    "gpu-manager": _GPU_MANAGER,
    "k8s-gpushare-plugin": _GPUSHARE,
    "volcano-device-plugin": _VOLCANO,
    "k8s-device-plugin": _NVIDIA,
    "hami": _HAMI,
}
"""DaemonSets of other systems, by the name of one of their images."""

SCHEDULERS: Final = {
    "gpu-admission": "gpu-manager's",
    "gpu-quota-admission": "gpu-manager's",
    "k8s-gpushare-schd-extender": "gpushare's",
    "hami": "HAMi's",
}
"""Deployments of other systems that place GPU pods, by the name of one of their images."""


def image_name(image: str) -> str:
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0]


def _same_node(snapshot: Snapshot) -> Iterator[FoundFault]:
    ours = set(snapshot.settings.advertised_resources())
    nodes = [node for node in snapshot.nodes if is_to_have_agent(node)]
    for each, peer in _plugins(snapshot):
        there = snapshot.daemons.get((each.namespace, each.name), frozenset())
        both = [node.name for node in nodes if node.name in there]
        shared = sorted(peer.resources & ours)
        if both and shared:
            got = f"{peer.system}'s plugin offers {', '.join(shared)} on {several(both, 'node')}, as our agent does"
            fix = "keep it off these nodes by its nodeSelector, or take the resources from the setting `node_resources`"
            yield FoundFault(str(each), got, fix)


def _plugins(snapshot: Snapshot) -> Iterator[tuple[WorkloadSnapshot, Peer]]:
    for each in snapshot.workloads:
        found = [PLUGINS[name] for name in map(image_name, each.images) if name in PLUGINS]
        if each.kind == "DaemonSet" and found:
            yield each, found[0]


def _schedulers(snapshot: Snapshot) -> Iterator[FoundFault]:
    for each in snapshot.workloads:
        found = [SCHEDULERS[name] for name in map(image_name, each.images) if name in SCHEDULERS]
        if each.kind == "Deployment" and found and not each.is_off:
            fix = "stop it after its pods were switched: two schedulers give a card away twice"
            yield FoundFault(str(each), f"{found[0]} scheduler of GPU pods", fix)


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "peer-plugin",
        WARNING,
        "one plugin serves a resource on a node",
        "Kubelet uses the plugin that registered last; containers of the other one get no card, or the wrong one.",
        _same_node,
        unless=("not-offered",),
    ),
    Check(
        "peer-scheduler",
        NOTE,
        "one system places the pods that request cards",
        "Each system counts only the cards that it gave out itself.",
        _schedulers,
    ),
)
