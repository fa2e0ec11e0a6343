"""Computes the value of a hole of each size to the expected shares, as a part of a whole card.

Shares get prices such that no set that fits on a card is worth more than a card, and all expected shares together are
worth as much as possible: the dual of cutting stock, solved by column generation. A hole is worth the most valuable set
that fits into it; nothing, where every share that fits finds room anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from halfcard.claims import WHOLE_CARD

_NEAR: Final = 1e-9
_MAX_ROUNDS: Final = 400

Worth = tuple[float, ...]
"""The value of holes of 0 to 100 hundredths."""


def worth_of_holes(demand: Mapping[int, float]) -> Worth:
    """Returns the value by size; `demand` is the number of expected shares of each size."""
    sizes = sorted(size for size, count in demand.items() if count > 0 and 0 < size < WHOLE_CARD)
    fills = _Fills(sizes, [demand[size] for size in sizes])
    best, chosen = _most_valuable(sizes, fills.prices())
    for _ in range(_MAX_ROUNDS):
        if best[WHOLE_CARD] <= 1 + _NEAR:
            break
        fills.use(_counted(sizes, chosen))
        best, chosen = _most_valuable(sizes, fills.prices())
    whole = max(best[WHOLE_CARD], _NEAR)
    return (*[value / whole for value in best[:WHOLE_CARD]], 1.0)


class _Fills:
    """The simplex method: as many ways to fill a card as there are sizes, and how many cards are filled in each."""

    def __init__(self, sizes: list[int], demand: list[float]) -> None:
        self._inverse = [
            [1.0 / (WHOLE_CARD // size) if at == other else 0.0 for other in range(len(sizes))]
            for at, size in enumerate(sizes)
        ]
        self._cards = [count / (WHOLE_CARD // size) for size, count in zip(sizes, demand, strict=True)]

    def prices(self) -> list[float]:
        return [sum(column) for column in zip(*self._inverse, strict=True)]

    def use(self, fill: list[int]) -> None:
        """Replaces the pattern that runs out first."""
        column = [sum(one * other for one, other in zip(row, fill, strict=True)) for row in self._inverse]
        ratios = [(self._cards[at] / rate, at) for at, rate in enumerate(column) if rate > _NEAR]
        _, leaving = min(ratios)
        pivot = [value / column[leaving] for value in self._inverse[leaving]]
        cards = self._cards[leaving] / column[leaving]
        for at, rate in enumerate(column):
            if rate:
                self._inverse[at] = [value - rate * by for value, by in zip(self._inverse[at], pivot, strict=True)]
                self._cards[at] -= rate * cards
        self._inverse[leaving], self._cards[leaving] = pivot, cards


def _most_valuable(sizes: list[int], prices: list[float]) -> tuple[list[float], list[int]]:
    """Returns for holes of 0 to 100 the most that shares in it are worth, and the size of one of them, 0 for none."""
    best, chosen = [0.0], [0]
    priced = list(zip(sizes, prices, strict=True))
    for hole in range(1, WHOLE_CARD + 1):
        most, size_of_one = best[-1], 0
        for size, price in priced:
            if size > hole:
                break
            if best[hole - size] + price > most + _NEAR:
                most, size_of_one = best[hole - size] + price, size
        best.append(most)
        chosen.append(size_of_one)
    return best, chosen


def _counted(sizes: list[int], chosen: list[int]) -> list[int]:
    """Returns how many shares of each size the most valuable set on a whole card has."""
    counts = dict.fromkeys(sizes, 0)
    hole = WHOLE_CARD
    while hole:
        if chosen[hole]:
            counts[chosen[hole]] += 1
        hole -= chosen[hole] or 1
    return list(counts.values())
