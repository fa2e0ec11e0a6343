"""NVIDIA's device plugin: whole cards, or time-slicing replicas under their own name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from .. import names
from ..claims import CARDS, SHARES, Claim, Part, Unit, whole_cards
from ..problems import ONE_KIND, Problem
from ..quantity import Quantity
from .dialect import AmountRefusal, Dialect, ParsedAmount, at
from .hami import HAMI_WORDS, part_of_card


class Nvidia(Dialect):
    name = "nvidia"
    units: Final = {names.NVIDIA_GPU: Unit(CARDS), names.NVIDIA_GPU_SHARED: Unit(SHARES, part=Part.SLICE)}
    offered: Final = (names.NVIDIA_GPU,)
    """Time slices come with it, where a node's configuration has them."""

    examples = ({names.NVIDIA_GPU: 2}, {names.NVIDIA_GPU_SHARED: 1})

    def speaks(self, asked: Collection[str]) -> bool:
        """Returns False when HAMi's resources are present: nvidia.com/gpu is then HAMi's count of slots."""
        if names.NVIDIA_GPU_SHARED in asked:
            return True
        return names.NVIDIA_GPU in asked and HAMI_WORDS.isdisjoint(asked)

    def read(self, resource: str, quantity: Quantity) -> ParsedAmount | AmountRefusal:
        return part_of_card(quantity) if resource == names.NVIDIA_GPU else super().read(resource, quantity)

    def check(self, amounts: Mapping[str, int], where: str) -> Iterator[Problem]:
        if amounts.get(names.NVIDIA_GPU) and amounts.get(names.NVIDIA_GPU_SHARED):
            yield ONE_KIND.broken(
                at(where, names.NVIDIA_GPU_SHARED),
                amounts[names.NVIDIA_GPU_SHARED],
                f"keep {names.NVIDIA_GPU} for whole cards, or {names.NVIDIA_GPU_SHARED} for time slices",
            )

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        if cards := amounts.get(names.NVIDIA_GPU, 0):
            return whole_cards(cards, self.name)
        slots = amounts.get(names.NVIDIA_GPU_SHARED, 0)
        if not slots:
            return None
        return Claim(slots, None, None, exclusive=False, distinct=False, dialect=self.name, part=Part.SLICE)
