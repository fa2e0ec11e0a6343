"""Converts the driver's cards to Halfcard's cards.

Invariant: every card has its own index; the first card with an index keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final

from halfcard.cards import Card

from .interface import Gpu

_MIG: Final = "it is cut into MIG instances, which are not shared"


def cards(gpus: Sequence[Gpu], why_not: Mapping[str, str], replicas: Mapping[str, int] | int = 1) -> tuple[Card, ...]:
    """Returns the cards; `why_not` and `replicas` are by uuid; a card without replicas is not sliced."""
    slices = dict.fromkeys((gpu.uuid for gpu in gpus), replicas) if isinstance(replicas, int) else replicas
    return tuple(
        _card(gpu, index, why_not.get(gpu.uuid, ""), slices.get(gpu.uuid, 1))
        for gpu, index in zip(gpus, _indices(gpus), strict=True)
    )


def _card(gpu: Gpu, index: int, why_not: str, replicas: int) -> Card:
    reason = why_not or (_MIG if gpu.is_mig else "")
    return Card(index, gpu.model, gpu.memory_mib or None, gpu.uuid, gpu.numa, gpu.links, replicas, reason)


def _indices(gpus: Sequence[Gpu]) -> Iterator[int]:
    """Yields indices: a reloaded driver renumbers its cards, so a missing card may have the number of a present one."""
    borne = {gpu.minor for gpu in gpus}
    free = (number for number in count() if number not in borne)
    taken: set[int] = set()
    for gpu in gpus:
        yield next(free) if gpu.minor in taken else gpu.minor
        taken.add(gpu.minor)
