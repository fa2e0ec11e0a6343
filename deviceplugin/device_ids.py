"""Decides under which device ids a resource is offered.

Invariant: an id is a count without a card in it. An id that a container holds is never withdrawn, because kubelet would
kill the pod at its next restart; an id that kubelet may be allocating is not withdrawn, because kubelet itself would
crash (`allocateContainerResources` of 1.34 to 1.36 looks it up again after Allocate and expects it).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count, islice
from types import MappingProxyType
from typing import Final, NamedTuple

LINGERS_S: Final = 10.0
"""Between kubelet's choice of ids and its last look at them lies one call of Allocate."""

_OURS: Final = re.compile(r"hc-(0|[1-9][0-9]*)")


def is_ours(device_id: str) -> bool:
    """Whether it looks as if we had made it."""
    return _OURS.fullmatch(device_id) is not None


def ids_to_publish(held: Iterable[str], total: int) -> tuple[str, ...]:
    """All that are held, filled up to the total with the smallest numbers that are free."""
    kept = set(held)
    free = (f"hc-{number}" for number in count() if f"hc-{number}" not in kept)
    return tuple(sorted(kept.union(islice(free, max(0, total - len(kept)))), key=_place))


class ListedIds(NamedTuple):
    """The ids of one resource as kubelet gets them.

    Attributes:
        offered: for new containers, and for those that hold them.
        leaving: for no new container, each until this time.
    """

    offered: tuple[str, ...] = ()
    leaving: Mapping[str, float] = MappingProxyType({})

    def next(self, held: Iterable[str], total: int, now: float) -> ListedIds:
        """Returns the next state when so many ids are to be offered."""
        offered = ids_to_publish(held, total)
        gone = dict.fromkeys(set(self.offered).difference(offered), now + LINGERS_S)
        staying = {each: until for each, until in self.leaving.items() if until > now}
        leaving = staying | gone
        for each in leaving.keys() & set(offered):
            del leaving[each]
        return ListedIds(offered, leaving)


def _place(device_id: str) -> tuple[int, int, str]:
    ours = _OURS.fullmatch(device_id)
    return (0, int(ours[1]), "") if ours else (1, 0, device_id)
