"""Volcano's words: MiB of one card, or a number of whole cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from .. import names
from ..claims import Claim, memory_share, whole_cards
from ..problems import ONE_KIND, Problem
from .dialect import Plain, at


class Volcano(Plain):
    name: Final = "volcano"
    resources: Final = frozenset({names.VOLCANO_GPU_MEMORY, names.VOLCANO_GPU_NUMBER})
    without_ids: Final = frozenset({names.VOLCANO_GPU_MEMORY})

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
