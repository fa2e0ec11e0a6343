"""gpushare's resource: memory of one card, in GiB or in MiB as the node's plugin was started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from .. import names
from ..cards import Card, CardLimit
from ..claims import MEMORY, Claim, Unit, memory_share
from .dialect import Dialect
from .record import PeerRecord, PlacedPod, one_list

_READ: Final = one_list(names.ALIYUN_INDEX, "aliyun")


@dataclass(frozen=True)
class Aliyun(Dialect):
    name = "aliyun"
    examples = ({names.ALIYUN_GPU_MEM: 3},)
    unit_mib: int = 1024

    @cached_property
    def units(self) -> Mapping[str, Unit]:
        return {names.ALIYUN_GPU_MEM: Unit(MEMORY, self.unit_mib)}

    @cached_property
    def without_ids(self) -> frozenset[str]:
        return self.resources if self.unit_mib == 1 else frozenset()

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        memory = amounts.get(names.ALIYUN_GPU_MEM, 0)
        return memory_share(memory * self.unit_mib, self.name) if memory else None

    def variables(self, limits: Sequence[CardLimit], cards: Sequence[Card], pod_mib: int) -> dict[str, str]:
        mine = (limits[0].memory_mib or 0) // self.unit_mib
        return {**self._amounts(cards[0], pod_mib), names.ALIYUN_CONTAINER_VARIABLE: str(mine)}

    @cached_property
    def record(self) -> PeerRecord:
        return PeerRecord("gpushare", _READ, self._write, names.ALIYUN_ASSUME_TIME)

    def _write(self, placed: PlacedPod, wanted: list[int], now_ns: int) -> dict[str, str]:
        """Its agent knows one card for each pod: several cards are only in Halfcard's record."""
        positions = {at for number in wanted for at in placed.layout[number]}
        if len(positions) != 1:
            return {}
        pod_mib = sum(placed.needs[number].claim.memory_mib or 0 for number in wanted)
        return {
            **self._amounts(placed.node.cards[positions.pop()], pod_mib),
            names.ALIYUN_ASSIGNED: "false",
            names.ALIYUN_ASSUME_TIME: str(now_ns),
        }

    def _amounts(self, card: Card, pod_mib: int) -> dict[str, str]:
        return {
            names.ALIYUN_INDEX: str(card.index),
            names.ALIYUN_CARD_TOTAL: str((card.memory_mib or 0) // self.unit_mib),
            names.ALIYUN_POD_TOTAL: str(pod_mib // self.unit_mib),
        }
