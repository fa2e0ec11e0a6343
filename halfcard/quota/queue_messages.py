"""Words why a pod waits in the queue of a budget, and behind which pods."""

from __future__ import annotations

from collections.abc import Iterator

from ..problems import MAX_MESSAGE_BYTES, clipped, printable
from .budget_messages import exceeded
from .queueing import BlockedPod

_KEY_CHARS = 100


def waits_for(blocked: BlockedPod, title: str) -> str:
    """Describes what a pod waits for in the budget of this title."""
    return clipped("; ".join(_parts(blocked, title)), MAX_MESSAGE_BYTES)


def _parts(blocked: BlockedPod, title: str) -> Iterator[str]:
    if blocked.obstacle:
        yield f"quota {title} cannot be checked now: {blocked.obstacle}"
    if blocked.shortages:
        yield f"next in the queue: {exceeded(title, blocked.shortages)}"
    for before in dict.fromkeys((pod.namespace, pod.pod) for pod in blocked.behind.values()):
        keys = [key for key, pod in blocked.behind.items() if (pod.namespace, pod.pod) == before]
        amounts = ", ".join(printable(key, _KEY_CHARS) for key in keys)
        yield f"behind pod {'/'.join(before)}, which waits for the same of quota {title}: {amounts}"
