"""Under which device ids a resource is offered.

The law: an id is a count and nothing more, no card is in it; one that a container holds is never withdrawn, because
kubelet would kill the pod at its next restart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count, islice
from typing import Final

_OURS: Final = re.compile(r"hc-(0|[1-9][0-9]*)")


def is_ours(device_id: str) -> bool:
    """Whether it looks as if we had made it."""
    return _OURS.fullmatch(device_id) is not None


def published(held: Iterable[str], total: int) -> tuple[str, ...]:
    """All that are held, filled up to the total with the smallest numbers that are free."""
    kept = set(held)
    free = (f"hc-{number}" for number in count() if f"hc-{number}" not in kept)
    return tuple(sorted(kept.union(islice(free, max(0, total - len(kept)))), key=_place))


def _place(device_id: str) -> tuple[int, int, str]:
    ours = _OURS.fullmatch(device_id)
    return (0, int(ours[1]), "") if ours else (1, 0, device_id)
