"""The expected pods: classes of pods, and how many of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, NamedTuple

from halfcard.claims import WHOLE_CARD, Claim, ContainerStage, Part
from halfcard.placing.demand import Demand

_HALF: Final = 50
_SLICE: Final = 25
"""Nodes differ in the number of time slices of a card; four is usual."""


class PodClass(NamedTuple):
    """The class of pods that need the same of a node.

    Attributes:
        share: the cores of each card in hundredths; 0 for pods that use no card, or only its memory.
        models: the accepted models, as in CardPreferences; empty for any card.
        card_mib: the memory of each card.
    """

    cpu_milli: int
    memory_mib: int
    cards: int = 0
    share: int = 0
    models: tuple[str, ...] = ()
    card_mib: int = 0

    @property
    def load(self) -> float:
        """The requested cards."""
        return self.cards * self.share / WHOLE_CARD

    @property
    def is_whole(self) -> bool:
        return self.cards > 0 and self.share == WHOLE_CARD

    def may_use(self, model: str) -> bool:
        return not self.models or any(part in model.lower() for part in self.models)

    def on_cards_of(self, card_mib: int) -> PodClass:
        """Returns the class with the larger share of cores and memory, which no other pod can use."""
        memory = -(-WHOLE_CARD * self.card_mib // card_mib) if card_mib else 0
        return self._replace(share=min(max(self.share, memory), WHOLE_CARD), card_mib=0)


class WorkloadMix(NamedTuple):
    """How often each class of pods comes; only proportions matter."""

    kinds: tuple[tuple[PodClass, float], ...]

    def as_seen(self, view: Callable[[PodClass], PodClass]) -> WorkloadMix:
        """Replaces each class by its view, and merges classes that become equal."""
        counts: dict[PodClass, float] = defaultdict(float)
        for kind, count in self.kinds:
            counts[view(kind)] += count
        return WorkloadMix(tuple(counts.items()))

    def where(self, wanted: Callable[[PodClass], bool]) -> WorkloadMix:
        return WorkloadMix(tuple([(kind, count) for kind, count in self.kinds if wanted(kind)]))

    def common(self, share: float) -> tuple[tuple[PodClass, float], ...]:
        """Returns the most frequent classes that together make up this share of all pods; their weights sum to 1."""
        ordered = sorted(self.kinds, key=lambda item: (-item[1], item[0]))
        wanted, taken = share * sum(count for _, count in ordered), 0.0
        chosen = []
        for kind, count in ordered:
            if taken >= wanted:
                break
            chosen.append((kind, count))
            taken += count
        return tuple([(kind, count / taken) for kind, count in chosen])


def pod_class_of(demand: Demand) -> PodClass:
    """Returns the class of a pod: containers that fit on one card together count as one, init containers as none."""
    claims = [need.claim for need in demand.needs if need.stage is not ContainerStage.INIT]
    whole = sum(claim.cards for claim in claims if claim.exclusive)
    if whole:
        cards, share, memory = whole, WHOLE_CARD, 0
    else:
        cards, share, memory = _shares(claims)
    return PodClass(demand.cpu_milli, demand.memory_mib, cards, share, demand.wanted.models, memory)


def _shares(claims: list[Claim]) -> tuple[int, int, int]:
    """Returns the number of cards, and the cores and memory of each."""
    sizes = [_size(claim) for claim in claims]
    together = sum(share for share, _ in sizes)
    if all(claim.cards == 1 for claim in claims) and together <= WHOLE_CARD:
        return min(len(claims), 1), together, sum(memory for _, memory in sizes)
    largest = max(sizes)
    return sum(claim.cards for claim in claims), *largest


def _size(claim: Claim) -> tuple[int, int]:
    """Returns the cores and memory that a claim needs of one card."""
    if claim.part is Part.HALF:
        return _HALF, 0
    if claim.part is Part.SLICE:
        return _SLICE, 0
    return max(claim.cores_pct or 0, claim.memory_pct or 0), claim.memory_mib or 0


USUAL: Final = WorkloadMix(
    (
        (PodClass(4000, 16384, 1, 10), 1.0),
        (PodClass(4000, 16384, 1, 25), 3.0),
        (PodClass(6000, 24576, 1, 30), 2.0),
        (PodClass(8000, 32768, 1, 50), 4.0),
        (PodClass(8000, 32768, 1, 75), 1.0),
        (PodClass(8000, 32768, 1, 100), 8.0),
        (PodClass(16000, 65536, 2, 100), 1.0),
        (PodClass(32000, 131072, 4, 100), 0.5),
        (PodClass(64000, 262144, 8, 100), 0.5),
    )
)
"""The mix of a cluster that has had no pods yet: halves and quarters, whole cards, some jobs on many cards."""
