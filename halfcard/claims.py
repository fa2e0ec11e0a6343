"""Defines claims, which are the same in every dialect, and the units in which resources count them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

WHOLE_CARD: Final = 100
"""Cores of one card, in per cent."""

UNIT_MIB: Final = 256
"""gpu-manager counts memory in units of this size."""

CORES, MEMORY, CARDS, SHARES = "cores", "memory", "cards", "shares"
"""The amounts of a claim: per cent of a card, MiB, whole cards, and parts of cards whose rest others may use."""


class Part(StrEnum):
    """The part of a card that a claim takes when it does not take the whole card."""

    AMOUNT = "amount"
    HALF = "half"
    SLICE = "slice"


@dataclass(frozen=True, slots=True)
class Claim:
    """The cards that one container needs.

    Attributes:
        cards: the number of cards.
        cores_pct: share of each card's cores, None for no limit.
        memory_mib: memory on each card, None for no limit or for a part given by `memory_pct`.
        memory_pct: part of each card's memory in per cent, for systems that do not count MiB.
        part: amounts of a card, or one of the equal parts of it.
        exclusive: no other pod may use the cards.
        distinct: the cards are different ones.
        dialect: the dialect of the request.
    """

    cards: int
    cores_pct: int | None
    memory_mib: int | None
    exclusive: bool
    distinct: bool
    dialect: str
    memory_pct: int | None = None
    part: Part = Part.AMOUNT

    @property
    def is_share(self) -> bool:
        return not self.exclusive

    @property
    def fills_cards(self) -> bool:
        """Whether it leaves no memory of its cards to others: where it names none, nothing limits it."""
        takes_all = self.memory_mib is None and self.part is Part.AMOUNT and (self.memory_pct or 100) >= 100
        return self.exclusive or takes_all


class ContainerStage(StrEnum):
    APP = "app"
    SIDECAR = "sidecar"
    INIT = "init"


class Need(NamedTuple):
    """The claim of one container, and when the container runs.

    Attributes:
        order: its position among init containers, which start before all others, or among the others.
        ids: how many device ids kubelet allocates to it, by resource.
    """

    stage: ContainerStage
    order: int
    claim: Claim
    ids: tuple[tuple[str, int], ...] = ()


class Unit(NamedTuple):
    """The unit of a resource.

    Attributes:
        counted: what the resource counts: cores, memory, cards or shares.
        size: the cores, MiB, cards or shares in one unit.
        part: a half or a slice where one unit is an equal part of a card.
        noun: the usual name of one unit; empty where it follows from `counted`.
    """

    counted: str
    size: int = 1
    part: Part = Part.AMOUNT
    noun: str = ""


def whole_cards(cards: int, dialect: str, *, memory_mib: int | None = None) -> Claim:
    """Claims whole cards; `memory_mib` is only set where the request names an amount."""
    return Claim(cards, None, memory_mib, exclusive=True, distinct=True, dialect=dialect)


def memory_share(memory_mib: int | None, dialect: str, *, cores_pct: int | None = None) -> Claim:
    """Claims a part of one card."""
    return Claim(1, cores_pct, memory_mib, exclusive=False, distinct=False, dialect=dialect)
