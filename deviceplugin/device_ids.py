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
"""Kubelet looks ids up once more after Allocate, so a withdrawn id stays listed for the time of that call."""

_OURS: Final = re.compile(r"hc-(0|[1-9][0-9]*)")


def is_ours(device_id: str) -> bool:
    """Returns whether the id has our format."""
    return _OURS.fullmatch(device_id) is not None


def ids_to_publish(held: Iterable[str], total: int) -> tuple[str, ...]:
    """Returns all held ids, filled up to the total with the smallest free numbers."""
    kept = set(held)
    free = (f"hc-{number}" for number in count() if f"hc-{number}" not in kept)
    return tuple(sorted(kept.union(islice(free, max(0, total - len(kept)))), key=_place))


class ListedIds(NamedTuple):
    """The ids of one resource as they are listed to kubelet.

    Attributes:
        offered: listed as healthy.
        withdrawn: listed as unhealthy, each until this time.
    """

    offered: tuple[str, ...] = ()
    withdrawn: Mapping[str, float] = MappingProxyType({})

    def next(self, held: Iterable[str], total: int, now: float) -> ListedIds:
        """Returns the next state, in which `total` ids are offered."""
        offered = ids_to_publish(held, total)
        gone = dict.fromkeys(set(self.offered).difference(offered), now + LINGERS_S)
        staying = {each: until for each, until in self.withdrawn.items() if until > now}
        withdrawn = staying | gone
        for each in withdrawn.keys() & set(offered):
            del withdrawn[each]
        return ListedIds(offered, withdrawn)


def _place(device_id: str) -> tuple[int, int, str]:
    ours = _OURS.fullmatch(device_id)
    return (0, int(ours[1]), "") if ours else (1, 0, device_id)
