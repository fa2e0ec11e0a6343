"""The pods that are expected: kinds of pods, and how many of each."""

from __future__ import annotations

from typing import NamedTuple

from halfcard.claims import WHOLE_CARD


class Kind(NamedTuple):
    """Pods that need the same of a node.

    Attributes:
        share: of each card, in hundredths; 0 for pods that use no card.
        models: as in Wanted; empty where any card will do.
    """

    cpu_milli: int
    memory_mib: int
    cards: int = 0
    share: int = 0
    models: tuple[str, ...] = ()

    @property
    def load(self) -> float:
        """In cards."""
        return self.cards * self.share / WHOLE_CARD

    def may_use(self, model: str) -> bool:
        return not self.models or any(part in model.lower() for part in self.models)


class Mix(NamedTuple):
    """How often each kind comes; only proportions matter."""

    kinds: tuple[tuple[Kind, float], ...]

    def common(self, share: float) -> tuple[tuple[Kind, float], ...]:
        """The most frequent kinds, until they make up this share of all; their weights sum to 1."""
        ordered = sorted(self.kinds, key=lambda item: (-item[1], item[0]))
        wanted, taken = share * sum(count for _, count in ordered), 0.0
        chosen = []
        for kind, count in ordered:
            if taken >= wanted:
                break
            chosen.append((kind, count))
            taken += count
        return tuple([(kind, count / taken) for kind, count in chosen])
