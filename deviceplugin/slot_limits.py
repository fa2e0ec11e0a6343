"""Finds what the containers of slots may have of the memory of cards, and where their processes are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from .allocate.grant import ContainerLimits
from .allocate.slots import Slot, Slots
from .usage.cgroups import Cgroups
from .usage.driver_limits import MemoryLimit
from .usage.usage_report import StartedPod

_LIMITS: Final = msgspec.json.Decoder(ContainerLimits)


class SlotLimits:
    """The memory limits of the containers that are to be held; containers without a cgroup yet have none."""

    def __init__(self, slots: Slots, cgroups: Cgroups, pods: Callable[[], Iterable[StartedPod]]) -> None:
        self._slots = slots
        self._cgroups = cgroups
        self._pods = pods

    def __call__(self, can_limit: Callable[[str], bool]) -> list[MemoryLimit]:
        """Returns the limits on cards of which the memory can be limited."""
        ids = {(pod.facts.uid, name): written for pod in self._pods() for name, written in _containers(pod).items()}
        return [limit for slot in self._slots for limit in self._of(slot, ids) if can_limit(limit.card)]

    def _of(self, slot: Slot, ids: Mapping[tuple[str, str], str]) -> Iterator[MemoryLimit]:
        container = ids.get((slot.uid, slot.only_container), "").rpartition("/")[2]
        cgroup = self._cgroups.folder(slot.uid, container) if slot.holding is not None and container else ""
        if cgroup:
            with suppress(OSError, msgspec.MsgspecError):
                for card in _LIMITS.decode(self._slots.limits_file(slot.name).read_bytes()).cards:
                    if card.memory_mib is not None:
                        yield MemoryLimit(slot.name, cgroup, card.uuid, card.memory_mib)


def _containers(pod: StartedPod) -> Mapping[str, str]:
    return {**pod.inits, **pod.apps}
