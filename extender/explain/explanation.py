"""Why a pod is where it is, or why it is nowhere: each node and each card with its one reason, and who is in the way.

A function of the state and the pod; nothing is asked and nothing changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from halfcard.claims import Claim, Part
from halfcard.placing.pod_facts import PodFacts

from ..packing.placement import PackingPolicy
from ..quota_limits import UNLIMITED, QuotaLimits
from ..state import State
from ..unplaceable import Unplaceable, check_no_record
from .bound import BoundPod, explain_bound
from .pending import PendingPod, explain_pending


class PodState(StrEnum):
    PENDING = "pending"
    BOUND = "bound"
    NO_CARDS = "asks for no card"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one pod.

    Attributes:
        asks: the request of each container, in words.
        wants: the card preferences of the owner, as written.
        gates: its scheduling gates.
        trouble: why the pod can be placed on no node, or why its cards are uncertain.
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

    @property
    def has_nowhere_to_go(self) -> bool:
        if self.standing is not PodState.PENDING:
            return False
        return self.prospects is None or not any(node.fits for node in self.prospects.nodes)


def explain(state: State, pod: PodFacts, policy: PackingPolicy, limits: QuotaLimits = UNLIMITED) -> Explanation:
    """`policy` is the one by which the pod would be placed, `limits` are what its quotas leave it where."""
    standing, trouble = _standing(pod), _trouble(pod)
    return Explanation(
        pod.title,
        standing,
        pod.priority,
        pod.created,
        {name: describe_claim(need.claim) for name, need in zip(pod.containers, pod.demand.needs, strict=True)},
        pod.demand.wanted.text,
        trouble,
        explain_pending(state, pod, policy, limits) if standing is PodState.PENDING and not trouble else None,
        explain_bound(state, pod) if standing is PodState.BOUND else None,
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
    """Describes a claim."""
    if claim.part is Part.HALF:
        return "half of a card" if claim.cards == 1 else f"a half of each of {claim.cards} cards"
    if claim.part is Part.SLICE:
        return "a time slice" if claim.cards == 1 else f"{claim.cards} time slices"
    if claim.exclusive:
        return "a whole card" if claim.cards == 1 else f"{claim.cards} whole cards"
    of = "a card" if claim.cards == 1 else f"each of {claim.cards} cards"
    return f"{_amounts(claim)} of {of}"


def _amounts(claim: Claim) -> str:
    said = [f"{claim.cores_pct} %"] if claim.cores_pct is not None else []
    if claim.memory_mib is not None:
        said.append(f"{claim.memory_mib} MiB")
    elif claim.memory_pct is not None:
        said.append(f"{claim.memory_pct} % of the memory")
    return " and ".join(said) or "a share"
