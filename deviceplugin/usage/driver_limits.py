"""Lets the driver itself limit the memory of containers, where it can: by their cgroups, whatever library they use.

Never tried on a card. It needs a driver of 615 or newer, cgroup v2 and a card without MIG. The driver counts all memory
of a cgroup but managed memory. A cgroup exists only after its container was created, so the limit follows a moment
later; it goes with the cgroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from ..gpus.interface import GpusError, NoMemoryLimitsError


class MemoryLimit(NamedTuple):
    """The memory that the container of a slot may have of a card; its processes are in this cgroup."""

    slot: str
    cgroup: str
    card: str
    mib: int


class DriverLimits:
    """Sets each limit once; `set_limit` takes a card, a cgroup and MiB, and may block.

    Only the hard limit is set: a guarantee would have to be taken back from the cgroups above before this one ends.
    """

    def __init__(self, set_limit: Callable[[str, str, int], None]) -> None:
        self._set_limit = set_limit
        self._set: frozenset[MemoryLimit] = frozenset()
        self._unable: set[str] = set()
        self.slots: frozenset[str] = frozenset()
        """The slots of which the driver limits the memory on all cards."""

    def can(self, card: str) -> bool:
        """Returns whether the driver may limit the memory of a card, as far as is known."""
        return card not in self._unable

    def hold(self, wanted: Iterable[MemoryLimit]) -> None:
        """Sets what is wanted and not set; a card whose driver sets no limits is not asked again."""
        asked = [*wanted]
        self._set = frozenset(each for each in asked if each in self._set or self._sets(each))
        self.slots = frozenset(each.slot for each in self._set) - {each.slot for each in asked if each not in self._set}

    def _sets(self, limit: MemoryLimit) -> bool:
        """Sets a limit; one that fails is tried again: its cgroup may have ended, or the driver is away."""
        if not self.can(limit.card):
            return False
        with suppress(GpusError):
            try:
                self._set_limit(limit.card, limit.cgroup, limit.mib)
            except NoMemoryLimitsError:
                self._unable.add(limit.card)
            return self.can(limit.card)
        return False
