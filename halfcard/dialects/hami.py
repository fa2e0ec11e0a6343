"""HAMi's resources: a number of cards, and for each of them MiB or per cent of memory and per cent of cores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from .. import names
from ..claims import CARDS, CORES, MEMORY, WHOLE_CARD, Claim, Unit
from ..problems import ONE_KIND, PER_CENT, QUANTITY, Problem
from ..quantity import NANOS, Quantity
from .dialect import AmountRefusal, Dialect, ParsedAmount, at, whole_number

HAMI_WORDS: Final = frozenset({names.HAMI_GPUMEM, names.HAMI_GPUMEM_PERCENTAGE, names.HAMI_GPUCORES})


class Hami(Dialect):
    name = "hami"
    units: Final = {
        names.NVIDIA_GPU: Unit(CARDS),
        names.HAMI_GPUMEM: Unit(MEMORY),
        names.HAMI_GPUCORES: Unit(CORES),
    }
    resources = HAMI_WORDS | {names.NVIDIA_GPU}
    without_ids = HAMI_WORDS
    per_card = HAMI_WORDS
    offered: Final = (names.NVIDIA_GPU,)
    examples = (
        {names.NVIDIA_GPU: 2, names.HAMI_GPUMEM: 3000, names.HAMI_GPUCORES: 30},
        {names.NVIDIA_GPU: 1, names.HAMI_GPUMEM_PERCENTAGE: 50},
    )

    def read(self, resource: str, quantity: Quantity) -> ParsedAmount | AmountRefusal:
        return part_of_card(quantity) if resource == names.NVIDIA_GPU else super().read(resource, quantity)

    def speaks(self, asked: Collection[str]) -> bool:
        return not HAMI_WORDS.isdisjoint(asked)

    def implied(self, amounts: Mapping[str, int]) -> Mapping[str, int]:
        """Memory or cores without a number of cards mean one card."""
        asks = any(amounts.get(word) for word in HAMI_WORDS)
        return {names.NVIDIA_GPU: 1} if asks and names.NVIDIA_GPU not in amounts else {}

    def check(self, amounts: Mapping[str, int], where: str) -> Iterator[Problem]:
        if amounts.get(names.HAMI_GPUMEM) and amounts.get(names.HAMI_GPUMEM_PERCENTAGE):
            yield ONE_KIND.broken(
                at(where, names.HAMI_GPUMEM_PERCENTAGE),
                amounts[names.HAMI_GPUMEM_PERCENTAGE],
                f"keep {names.HAMI_GPUMEM} (MiB) or {names.HAMI_GPUMEM_PERCENTAGE}",
            )
        for word in (names.HAMI_GPUCORES, names.HAMI_GPUMEM_PERCENTAGE):
            if amounts.get(word, 0) > 100:
                yield PER_CENT.broken(at(where, word), amounts[word], "use at most 100")

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        cards = amounts.get(names.NVIDIA_GPU, 0)
        if not cards:
            return None
        cores = amounts.get(names.HAMI_GPUCORES) or None
        return Claim(
            cards,
            cores,
            amounts.get(names.HAMI_GPUMEM) or None,
            exclusive=cores == 100,
            distinct=True,
            dialect=self.name,
            memory_pct=amounts.get(names.HAMI_GPUMEM_PERCENTAGE) or None,
        )


def part_of_card(quantity: Quantity) -> ParsedAmount | AmountRefusal:
    """Reads a number of cards; of a fraction it says how a part of a card is requested."""
    if not 0 < quantity.nanos < NANOS:
        return whole_number(quantity)
    cores = -(-quantity.nanos * WHOLE_CARD // NANOS)
    return AmountRefusal(
        QUANTITY, f"use 1, with {names.HAMI_GPUCORES}: {cores} and {names.HAMI_GPUMEM} in MiB for a part of a card"
    )
