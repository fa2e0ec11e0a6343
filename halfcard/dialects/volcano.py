"""Volcano's resources: MiB of one card, or a number of whole cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from .. import names
from ..cards import Card, CardLimit
from ..claims import CARDS, MEMORY, Claim, Unit, memory_share, whole_cards
from ..problems import ONE_KIND, Problem
from .dialect import Dialect, at
from .record import PeerRecord, PlacedPod, indices, one_list


def _write(placed: PlacedPod, wanted: list[int], now_ns: int) -> dict[str, str]:
    if len(wanted) != 1:
        return {}
    return {names.VOLCANO_INDEX: indices(placed.cards(wanted[0])), names.VOLCANO_TIME: str(now_ns)}


class Volcano(Dialect):
    name = "volcano"
    units: Final = {names.VOLCANO_GPU_MEMORY: Unit(MEMORY), names.VOLCANO_GPU_NUMBER: Unit(CARDS)}
    without_ids = frozenset({names.VOLCANO_GPU_MEMORY})
    record = PeerRecord("Volcano", one_list(names.VOLCANO_INDEX, "volcano"), _write, names.VOLCANO_TIME)
    examples = ({names.VOLCANO_GPU_MEMORY: 2048}, {names.VOLCANO_GPU_NUMBER: 2})

    def check(self, amounts: Mapping[str, int], where: str) -> Iterator[Problem]:
        if amounts.get(names.VOLCANO_GPU_MEMORY) and amounts.get(names.VOLCANO_GPU_NUMBER):
            yield ONE_KIND.broken(
                at(where, names.VOLCANO_GPU_MEMORY),
                amounts[names.VOLCANO_GPU_MEMORY],
                f"keep {names.VOLCANO_GPU_MEMORY} for a share, or {names.VOLCANO_GPU_NUMBER} for whole cards",
            )

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        if cards := amounts.get(names.VOLCANO_GPU_NUMBER, 0):
            return whole_cards(cards, self.name)
        memory = amounts.get(names.VOLCANO_GPU_MEMORY, 0)
        return memory_share(memory, self.name) if memory else None

    def variables(self, limits: Sequence[CardLimit], cards: Sequence[Card], pod_mib: int) -> dict[str, str]:
        if limits[0].memory_mib is None:
            return {}
        return {
            names.VOLCANO_ALLOCATED_VARIABLE: str(limits[0].memory_mib),
            names.VOLCANO_TOTAL_VARIABLE: str(cards[0].memory_mib or 0),
        }
