"""Explains where a pod is, or why it is unschedulable: one reason for each node and card, and the pods on them.

A pure function of the state and the pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from halfcard.claims import Claim, Part
from halfcard.placing.pod_facts import PodFacts

from ..packing.placement import PackingPolicy
from ..quota_limits import UNLIMITED, QuotaLimits
from ..state import State
from ..unplaceable import Unplaceable, check_no_record
from .bound import BoundPod, explain_bound, explain_record
from .pending import PendingPod, explain_pending
from .scheduling import Scheduling


class PodState(StrEnum):
    PENDING = "pending"
    BOUND = "bound"
    NO_CARDS = "asks for no card"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class PodEvent:
    """An Event in which one of Halfcard's processes said something about a pod."""

    reason: str
    message: str
    last_seen: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one pod; the names of all fields are JSON keys of `halfcard explain`.

    Attributes:
        standing: the state of the pod.
        asks: the request of each container, in words.
        wants: the card preferences of the pod, as written.
        gates: its scheduling gates.
        trouble: why no node may take the pod, or why its cards are uncertain.
        prospects: for a pending pod, each node and the nearest evictions.
        whereabouts: for a bound pod, its cards.
        scheduling: for a pending pod, what its scheduler says.
        events: what Halfcard's processes said about it.
        nodes_unread: the nodes and the pods on them are not known, as to a member of the pod's namespace.
    """

    pod: str
    standing: PodState
    priority: int
    created: str
    asks: Mapping[str, str]
    wants: str
    trouble: str
    prospects: PendingPod | None = None
    whereabouts: BoundPod | None = None
    gates: tuple[str, ...] = ()
    scheduling: Scheduling | None = None
    events: tuple[PodEvent, ...] = ()
    nodes_unread: bool = False

    @property
    def is_held_back(self) -> bool:
        """Returns whether something is known that keeps the pod from a node."""
        return self.has_nowhere_to_go or (self.scheduling is not None and self.scheduling.holds_back)

    @property
    def has_nowhere_to_go(self) -> bool:
        if self.standing is not PodState.PENDING or (self.nodes_unread and not self.trouble):
            return False
        return self.prospects is None or not any(node.fits for node in self.prospects.nodes)


def explain(state: State, pod: PodFacts, policy: PackingPolicy, limits: QuotaLimits = UNLIMITED) -> Explanation:
    """Explains a pod; `policy` is the packing policy that places it, `limits` are its quota limits."""
    found = _of_the_pod(pod)
    if found.standing is PodState.BOUND:
        return replace(found, whereabouts=explain_bound(state, pod))
    if found.standing is PodState.PENDING and not found.trouble:
        return replace(found, prospects=explain_pending(state, pod, policy, limits))
    return found


def explain_without_nodes(pod: PodFacts) -> Explanation:
    """Explains what the pod itself shows."""
    found = replace(_of_the_pod(pod), nodes_unread=True)
    return replace(found, whereabouts=explain_record(pod)) if found.standing is PodState.BOUND else found


def _of_the_pod(pod: PodFacts) -> Explanation:
    return Explanation(
        pod.title,
        _standing(pod),
        pod.priority,
        pod.created,
        {name: describe_claim(need.claim) for name, need in zip(pod.containers, pod.demand.needs, strict=True)},
        pod.demand.wanted.text,
        _trouble(pod),
    )


def _standing(pod: PodFacts) -> PodState:
    if pod.is_over:
        return PodState.OVER
    if not pod.asks_for_cards:
        return PodState.NO_CARDS
    return PodState.BOUND if pod.node else PodState.PENDING


def _trouble(pod: PodFacts) -> str:
    if pod.trouble or pod.node or not pod.demand.needs:
        return pod.trouble
    try:
        check_no_record(pod)
    except Unplaceable as forged:
        return str(forged)
    return ""


def describe_claim(claim: Claim) -> str:
    """Describes a claim in words, such as "50 % and 8192 MiB of a card"."""
    if claim.part is Part.HALF:
        return "half of a card" if claim.cards == 1 else f"a half of each of {claim.cards} cards"
    if claim.part is Part.SLICE:
        return "a time slice" if claim.cards == 1 else f"{claim.cards} time slices"
    if claim.exclusive:
        return "a whole card" if claim.cards == 1 else f"{claim.cards} whole cards"
    of = "a card" if claim.cards == 1 else f"each of {claim.cards} cards"
    return f"{_amounts(claim)} of {of}"


def _amounts(claim: Claim) -> str:
    amounts = [f"{claim.cores_pct} %"] if claim.cores_pct is not None else []
    if claim.memory_mib is not None:
        amounts.append(f"{claim.memory_mib} MiB")
    elif claim.memory_pct is not None:
        amounts.append(f"{claim.memory_pct} % of the memory")
    return " and ".join(amounts) or "a share"
