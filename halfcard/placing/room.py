"""Defines the room of a node: its cards, and what is still free of them, of CPU and of memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from ..cards import Card, Node
from .card_usage import CardMode, CardRoom, untouched


class FreeTotals(NamedTuple):
    """Totals of a room by kind, over the cards that may be assigned.

    Attributes:
        idle: cards that no pod uses.
        halves: cards with a free half.
        slices: free time slices.
        shares: free cores and MiB of each card that is free or shared.
        largest: the shares that no other share exceeds in both amounts: what fits anywhere fits into one of them.
    """

    idle: int
    halves: int
    slices: int
    shares: tuple[tuple[int, int], ...]
    largest: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Room:
    """A node's cards with what is free of them; positions refer to `cards`, not to the index of a card.

    Attributes:
        left: what is free of each card.
        slices: the resource name of the node's time slices, as in Node.
        cpu_milli: what is free of it, as is `memory_mib`; below 0 where pods were bound by others.
    """

    cards: tuple[Card, ...]
    left: tuple[CardRoom, ...]
    slices: str = ""
    cpu_milli: int = 0
    memory_mib: int = 0

    @cached_property
    def usable(self) -> tuple[int, ...]:
        """Returns the positions of the cards that may be assigned."""
        return tuple([at for at, card in enumerate(self.cards) if not card.why_not])

    @cached_property
    def has_loose(self) -> bool:
        """Returns whether some cards get no new shares, because they cannot be held."""
        return any(card.not_held for card in self.cards)

    @cached_property
    def counted(self) -> FreeTotals:
        idle = halves = slices = 0
        shares = []
        for card, (mode, cores, mib, parts) in zip(self.cards, self.left, strict=True):
            if card.why_not:
                continue
            if mode is CardMode.FREE:
                idle, halves, slices = idle + 1, halves + (not card.not_held), slices + card.replicas
            if mode is CardMode.SLICES:
                slices += parts
            elif card.not_held:
                continue
            elif mode is CardMode.HALVES:
                halves += parts > 0
            elif mode is not CardMode.EXCLUSIVE and card.memory_mib is not None:
                shares.append(_share(cores, mib))
        return FreeTotals(idle, halves, slices, tuple(shares), _largest(shares))

    def after(self, left: tuple[CardRoom, ...], *, cpu_milli: int = 0, memory_mib: int = 0) -> Room:
        """Returns the room with this left of each card, and with less free CPU and memory."""
        return Room(self.cards, left, self.slices, self.cpu_milli - cpu_milli, self.memory_mib - memory_mib)


@lru_cache(maxsize=4096)
def _share(cores: int, mib: int) -> tuple[int, int]:
    """Returns one copy for all equal amounts: reading one copy takes half the time of reading thousands in memory."""
    return cores, mib


def _largest(shares: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for cores, mib in sorted(shares, reverse=True):
        if not found or mib > found[-1][1]:
            found.append((cores, mib))
    return tuple(found)


def empty_room(node: Node) -> Room:
    left = tuple([untouched(card) for card in node.cards])
    return Room(node.cards, left, node.slices, node.cpu_milli, node.memory_mib)
