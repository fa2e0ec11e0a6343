"""Remembers the owners of the processes on cards, which are mostly the same at every scrape.

Invariant: a process once found in a container stays that container's until it ends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from .cgroup_paths import Owner
from .cgroups import Cgroups, Process


class _Known(NamedTuple):
    process: Process
    owner: Owner


class ProcessOwners:
    """Remembers the owners of the last call; use it in one thread at a time."""

    def __init__(self, cgroups: Cgroups) -> None:
        self._cgroups = cgroups
        self._known: Mapping[int, _Known] = {}

    def of(self, pids: Collection[int]) -> Mapping[int, Owner]:
        """Returns the owners; processes of the node itself, and ended ones, have none."""
        self._known = dict(self._look(pids))
        return {pid: known.owner for pid, known in self._known.items()}

    def _look(self, pids: Collection[int]) -> Iterator[tuple[int, _Known]]:
        for pid in pids:
            process, known = self._cgroups.process(pid), self._known.get(pid)
            if process is None:
                continue
            if known is not None and known.process == process:
                yield pid, known
            elif owner := self._cgroups.owner(pid):
                yield pid, _Known(process, owner)
