"""Tuya's half cards: each unit is half the memory of a different card, with unlimited compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .. import names
from ..claims import CORES, WHOLE_CARD, Claim, Part, Unit
from .dialect import Dialect


class Tuya(Dialect):
    name = "tuya"
    units: Final = {names.TUYA_SGPU: Unit(CORES, WHOLE_CARD // 2, Part.HALF)}
    examples = ({names.TUYA_SGPU: 2},)

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        halves = amounts.get(names.TUYA_SGPU, 0)
        if not halves:
            return None
        return Claim(
            halves, None, None, exclusive=False, distinct=True, dialect=self.name, memory_pct=50, part=Part.HALF
        )
