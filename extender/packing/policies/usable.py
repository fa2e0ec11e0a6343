"""Computes how much of what remains on a node the expected pods could use, in cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from halfcard.claims import WHOLE_CARD

from ..workload_mix import PodClass

_BITS: Final = 16
_MASK: Final = (1 << _BITS) - 1


class _Row(NamedTuple):
    """One class of pods; how often it fits per thousandth of a core and per MiB, 0 where it requests none."""

    worth: float
    per_cpu: float
    per_memory: float


def per_unit(amount: int) -> float:
    return 1 / amount if amount else 0.0


class Usable:
    """The usable amount of nodes of one model: the weighted mean, over pod classes, of how many pods fit by cards, CPU
    and memory.

    How often shares of each size fit is looked up and added card by card, with all sizes packed into one integer.
    """

    def __init__(self, kinds: Sequence[tuple[PodClass, float]]) -> None:
        single = [(kind, weight) for kind, weight in kinds if kind.cards == 1]
        sizes = sorted({kind.share for kind, _ in single})
        self._fits = [
            sum((amount // size) << (_BITS * at) for at, size in enumerate(sizes)) for amount in range(WHOLE_CARD + 1)
        ]
        self._by_size = [
            (_BITS * at, _rows((kind, weight) for kind, weight in single if kind.share == size))
            for at, size in enumerate(sizes)
        ]
        several = [(kind, weight) for kind, weight in kinds if kind.cards > 1]
        self._several = [
            (
                share,
                cards,
                _rows((kind, weight) for kind, weight in several if (kind.share, kind.cards) == (share, cards)),
            )
            for share, cards in sorted({(kind.share, kind.cards) for kind, _ in several})
        ]

    def of(self, amounts: list[int], cpu_milli: int, memory_mib: int) -> float:
        fits = self._fits
        packed = sum([fits[amount] for amount in amounts])
        total = 0.0
        for shift, rows in self._by_size:
            if slots := packed >> shift & _MASK:
                total += _used(slots, rows, cpu_milli, memory_mib)
        for share, cards, rows in self._several:
            if slots := len([amount for amount in amounts if amount >= share]) // cards:
                total += _used(slots, rows, cpu_milli, memory_mib)
        return total


def _used(slots: int, rows: list[_Row], cpu_milli: int, memory_mib: int) -> float:
    total = 0.0
    for worth, per_cpu, per_memory in rows:
        times: float = slots
        if per_cpu and (limit := cpu_milli * per_cpu) < times:  # min() would take longer than all the rest
            times = limit
        if per_memory and (limit := memory_mib * per_memory) < times:
            times = limit
        if times >= 1:
            total += worth * times
    return total


def _rows(kinds: Iterable[tuple[PodClass, float]]) -> list[_Row]:
    return [_Row(weight * kind.load, per_unit(kind.cpu_milli), per_unit(kind.memory_mib)) for kind, weight in kinds]
