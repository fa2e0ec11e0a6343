"""gpushare's words: memory of one card, in GiB or in MiB as the node's plugin was started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from .. import names
from ..claims import Claim, memory_share
from .dialect import Plain


@dataclass(frozen=True)
class Aliyun(Plain):
    name: ClassVar[str] = "aliyun"
    resources: ClassVar[frozenset[str]] = frozenset({names.ALIYUN_GPU_MEM})
    unit_mib: int = 1024

    @property
    def without_ids(self) -> frozenset[str]:
        return self.resources if self.unit_mib == 1 else frozenset()

    def claim(self, amounts: Mapping[str, int]) -> Claim | None:
        memory = amounts.get(names.ALIYUN_GPU_MEM, 0)
        return memory_share(memory * self.unit_mib, self.name) if memory else None
