"""Reduces a pod to the facts that placement needs: identity, demand, node, and record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ..claims import Need
from ..dialects import Dialects
from ..pod.card_preferences import read_preferences
from ..pod.owned_annotations import is_owned
from ..pod.request_totals import pod_cost
from ..pod.requests import RequestingContainer, read_pod, shape_problems
from ..pod.spec import Pod
from ..pod.stored_pod import StoredPod
from ..quantity import NANOS, InvalidQuantity, Quantity
from .demand import Demand, needs_of
from .node_usage import Bound
from .records import read

_CPU: Final = "cpu"
_MEMORY: Final = "memory"
_MACHINE: Final = frozenset({_CPU, _MEMORY})
_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class PodFacts:
    """Facts about one pod.

    Attributes:
        version: its resourceVersion.
        node: empty before it is bound.
        created: in the API server's format, which sorts as text.
        containers: the names of those with claims, in the order of the demand's needs.
        asks: requested GPU resources and amounts, as native quota counts them.
        owned: the annotations that only Halfcard and its peers may write.
        preempts: whether other pods may be evicted for it.
        trouble: what is wrong with its claims; empty for a valid pod. An invalid pod is never placed; if it is bound,
            its valid claims count.
    """

    uid: str
    namespace: str
    name: str
    version: str
    node: str
    created: str
    priority: int
    is_over: bool
    demand: Demand
    containers: tuple[str, ...]
    asks: Mapping[str, int]
    owned: Mapping[str, str]
    trouble: str = ""
    preempts: bool = True

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def asks_for_cards(self) -> bool:
        return bool(self.demand.needs or self.trouble)

    @property
    def has_record(self) -> bool:
        """Returns whether it carries a record, also one that cannot be understood."""
        return self.bound().named is not None

    def bound(self) -> Bound:
        named = read(self.owned, self.node, self.containers, self.demand.needs) if self.owned else None
        return Bound(self.created, self.uid, self.title, self.demand, named)


_NEVER: Final = "Never"


def read_facts(pod: StoredPod, dialects: Dialects) -> PodFacts:
    meta = pod.meta
    asked = read_pod(pod, dialects)
    containers, needs = needs_of(asked)
    needs = _remembered(needs)
    annotations = pod.annotations
    cpu_milli, memory_mib = _machine(pod)
    wanted = read_preferences(annotations)
    return PodFacts(
        uid=meta.uid,
        namespace=meta.namespace or "",
        name=meta.name or "",
        version=meta.resource_version,
        node=pod.node,
        created=meta.creation_timestamp or "",
        priority=(pod.spec and pod.spec.priority) or 0,
        is_over=pod.is_over,
        demand=Demand(needs, wanted, cpu_milli, memory_mib),
        containers=containers,
        asks=_asks(pod, dialects) if needs and all(request.is_read for _, request in asked) else {},
        owned={key: value for key, value in annotations.items() if is_owned(key)},
        trouble=_trouble(asked),
        preempts=pod.spec is None or pod.spec.preemption_policy != _NEVER,
    )


def _trouble(asked: tuple[RequestingContainer, ...]) -> str:
    """Returns the first problem of the claims: a pod that was not checked by the webhook may have any."""
    return next((str(problem) for problem in shape_problems(asked)), "")


@lru_cache(maxsize=4096)
def _remembered(needs: tuple[Need, ...]) -> tuple[Need, ...]:
    """Returns one copy for all pods with equal needs, since comparison by identity is fast."""
    return needs


def _machine(pod: Pod) -> tuple[int, int]:
    """Returns requested CPU in thousandths of a core, and memory in MiB."""
    cost = _cost(pod, _MACHINE)
    cpu, memory = (cost[name].nanos if name in cost else 0 for name in (_CPU, _MEMORY))
    return -(-cpu * 1000 // NANOS), -(-memory // (NANOS * _MIB))


def _asks(pod: Pod, dialects: Dialects) -> dict[str, int]:
    return {resource: cost.nanos // NANOS for resource, cost in _cost(pod, dialects.resources).items()}


def _cost(pod: Pod, resources: frozenset[str]) -> Mapping[str, Quantity]:
    """Returns the totals; empty where an amount cannot be read, which the scheduler handles."""
    try:
        return pod_cost(pod, resources)
    except InvalidQuantity:
        return {}
