"""The state of a cluster at one moment as plain data: everything that the checks use.

Invariant: what could not be read is None, which differs from absent, and is listed in `unread`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from certs.chain_health import ReadChain
from halfcard.dra.driver_nodes import DeviceClass
from settings.installation import Settings

from .own_objects import MissingRight, OwnPod, Taint, WorkloadSnapshot

Object = Mapping[str, Any]

ABSENT: Final[Object] = {}
"""Stands for an object that is not there."""


class Probe(NamedTuple):
    """The API server's answer to a dry-run create of a pod."""

    status: int
    message: str = ""


class NodeSystem(NamedTuple):
    """What runs on a node, as kubelet reports it; empty where it reports nothing."""

    kubelet: str = ""
    runtime: str = ""
    architecture: str = ""


class NodeSnapshot(NamedTuple):
    """A node.

    Attributes:
        cards: in order; None where its agent has written no inventory.
        condition: what the agent says of the cards; empty where it says nothing.
        isolation: what it says of whether shares are held; empty where isolation was never on.
        offers: of each resource that is no CPU or memory, what pods may have.
        unready: why kubelet or the node controller says that it is not ready; empty if it is.
        clock: how far its clock is ahead of the cluster's, in seconds, by its heartbeat; None if unknown.
    """

    name: str
    labels: Mapping[str, str]
    cards: int | None
    condition: Mapping[str, str]
    offers: Mapping[str, int]
    system: NodeSystem = NodeSystem()
    taints: tuple[Taint, ...] = ()
    unready: str = ""
    clock: float | None = None
    isolation: Mapping[str, str] = {}


class PodSnapshot(NamedTuple):
    """A pod with claims that is not over, or one without a node that carries records.

    Attributes:
        asks: whether it requests cards.
        forged: annotations that only Halfcard or a peer could have written.
        by_agent: whether our agent wrote its record, because its scheduler did not call the extender.
        resources: the GPU resources that it requests.
        message: why its scheduler has not bound it, in the scheduler's words.
        is_untried: whether no scheduler has tried it, though one should have by now.
    """

    title: str
    node: str
    created: str
    scheduler: str
    is_static: bool
    is_recorded: bool
    asks: bool
    forged: tuple[str, ...] = ()
    by_agent: bool = False
    resources: tuple[str, ...] = ()
    message: str = ""
    is_untried: bool = False

    @property
    def is_past_extender(self) -> bool:
        """Returns whether a bound pod has no record by the extender or a peer."""
        return not self.is_recorded or self.by_agent


class NotOfferedEvent(NamedTuple):
    """An agent's word that it does not offer something, or does so again."""

    node: str
    message: str
    last: datetime
    is_over: bool = False


class Scheduler(NamedTuple):
    """A kube-scheduler that runs as a pod.

    Attributes:
        file: of its configuration; empty where it has none.
        configuration: what stands there; None where that cannot be seen.
        image: of its container.
    """

    pod: str
    file: str
    configuration: Object | None
    image: str = ""


class RefusedWorkload(NamedTuple):
    """A stored pod or template that the webhook would refuse now; `why` is the first problem."""

    title: str
    why: str


class UnreadSource(NamedTuple):
    """A source that could not be read, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of a cluster.

    Attributes:
        settings_problem: why the settings in the cluster are invalid.
        settings_changed: the time of their last change.
        settings_hash: of the settings in the cluster, as the chart computes it for the pods; empty without the
            ConfigMap, None if unknown.
        api_server: its version, such as `v1.36.0`; empty if unknown.
        namespace: that of the installation; None if it cannot be read.
        missing_rights: of the processes that run as pods.
        webhooks: all configurations of the cluster.
        endpoints: the number of ready endpoints of each of our Services.
        bad, good: the answers to a pod that breaks two rules, and to one that breaks none.
        daemons: by namespace and name of a DaemonSet, the nodes on which it has a pod.
        doubts: implausible nodes and pods, by the extender's rules, a sentence each.
        short_of_derived: pods for which a scheduler requires resources that only quotas count.
        refused: of stored pods and templates, those that would be refused.
        ledgers: by name, what is wrong with it; empty for nothing.
    """

    now: datetime
    settings: Settings = field(default_factory=Settings)
    settings_problem: str = ""
    settings_changed: datetime | None = None
    settings_hash: str | None = None
    api_server: str = ""
    namespace: Object | None = None
    missing_rights: tuple[MissingRight, ...] = ()
    webhooks: tuple[Object, ...] | None = ()
    services: Mapping[str, Object | None] = field(default_factory=dict)
    endpoints: Mapping[str, int] | None = field(default_factory=dict)
    bad: Probe | None = None
    good: Probe | None = None
    secrets: Mapping[str, Mapping[str, bytes] | None] = field(default_factory=dict)
    chains: tuple[ReadChain, ...] = ()
    leases: Mapping[str, Object | None] = field(default_factory=dict)
    nodes: tuple[NodeSnapshot, ...] = ()
    pods: tuple[PodSnapshot, ...] = ()
    counted_pods: int = 0
    daemons: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    own_pods: tuple[OwnPod, ...] = ()
    workloads: tuple[WorkloadSnapshot, ...] = ()
    not_offered: tuple[NotOfferedEvent, ...] = ()
    schedulers: tuple[Scheduler, ...] = ()
    short_of_derived: tuple[str, ...] = ()
    refused: tuple[RefusedWorkload, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    quotas: tuple[Object, ...] = ()
    crds: Mapping[str, Object | None] = field(default_factory=dict)
    budgets: tuple[Object, ...] = ()
    ledgers: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[UnreadSource, ...] = ()

    def runs_in_place_of(self, workload: str) -> bool:
        """Returns whether another Deployment of the same process runs, such as the extender beside the scheduler."""
        others = (each for each in self.workloads if each.is_ours and each.account == workload and not each.is_off)
        return any(each.name != workload for each in others)
