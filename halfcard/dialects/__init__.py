"""The dialects: one module for each system, in one table. To add a system, add a module and a row here.

Code outside this package works with `Claim` and does not read resource names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from .. import names
from .aliyun import Aliyun
from .dialect import AmountRefusal, Dialect, ParsedAmount, read_text
from .hami import Hami
from .nvidia import Nvidia
from .tuya import Tuya
from .vcuda import Vcuda
from .volcano import Volcano

__all__ = ["ALL", "INCOMPATIBLE", "AmountRefusal", "Dialect", "Dialects", "ParsedAmount", "read_text"]

ALL: Final[tuple[Dialect, ...]] = (
    Vcuda("tencent", names.TENCENT, memory_alone=False),
    Vcuda("tuya-vcuda", names.TUYA, memory_alone=True),
    Tuya(),
    Aliyun(),
    Volcano(),
    Nvidia(),
    Hami(),
)

INCOMPATIBLE: Final[frozenset[frozenset[str]]] = frozenset({frozenset({"nvidia", "hami"})})
"""Pairs that no node serves at once: to HAMi's nodes nvidia.com/gpu is a slot, to NVIDIA's plugin it is a card."""


@dataclass(frozen=True, eq=False)
class Dialects:
    """The systems that are switched on; compared by identity, so that it is cheap to remember things by."""

    table: tuple[Dialect, ...] = ALL

    @classmethod
    def named(cls, wanted: Iterable[str], table: tuple[Dialect, ...] = ALL) -> Dialects:
        chosen = set(wanted)
        return cls(tuple(dialect for dialect in table if dialect.name in chosen))

    @cached_property
    def resources(self) -> frozenset[str]:
        """Every resource name that means GPU."""
        return frozenset().union(*(dialect.resources for dialect in self.table))

    @cached_property
    def by_resource(self) -> Mapping[str, Dialect]:
        """Maps each resource to the dialect that reads its amounts; where two dialects share a name they read it the
        same way.
        """
        return {resource: dialect for dialect in reversed(self.table) for resource in dialect.resources}

    @cached_property
    def companions(self) -> Mapping[str, str]:
        """Maps each resource that cannot be requested alone to the resource that must come with it."""
        return {memory: core for each in self.table for memory, core in each.companions.items()}

    @cached_property
    def without_ids(self) -> frozenset[str]:
        """Resources for which kubelet allocates no device ids: nodes publish at most a total."""
        return frozenset().union(*(dialect.without_ids for dialect in self.table))

    @cached_property
    def by_name(self) -> Mapping[str, Dialect]:
        return {dialect.name: dialect for dialect in self.table}

    @property
    def known(self) -> Collection[Dialect]:
        """All dialects, also those that are off; those that are on are as they are configured."""
        return {dialect.name: dialect for dialect in (*ALL, *self.table)}.values()

    def speakers(self, asked: Collection[str]) -> tuple[Dialect, ...]:
        """Returns the dialects of these resources; more than one means that the request mixes systems."""
        return tuple(dialect for dialect in self.table if dialect.speaks(asked))
