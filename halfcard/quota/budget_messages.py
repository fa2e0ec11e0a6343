"""Words the messages about budgets, in the form that people know from native quota."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from .. import names
from ..claims import CARDS, CORES, MEMORY, SHARES, WHOLE_CARD
from ..problems import MAX_MESSAGE_BYTES, clipped, printable
from .amount_key import AmountKey
from .ledger import Shortage
from .queueing import BlockedPod

_KEY_CHARS: Final = 100
_FIELD_CHARS: Final = 400
_MIB_OF_GIB: Final = 1024


def exceeded(title: str, shortages: Iterable[Shortage]) -> str:
    """Describes an exceeded budget, and what is missing."""
    listed = tuple(shortages)
    sums = [
        f"{word}: {','.join(f'{_key(each)}={amount(each.key, part(each))}' for each in listed)}"
        for word, part in _PARTS
    ]
    needed = "; ".join(_needed(each) for each in listed)
    return clipped(f"exceeded quota: {title}, {', '.join(sums)} ({needed})", MAX_MESSAGE_BYTES)


def contended(title: str, shortages: Iterable[Shortage], retry_s: int) -> str:
    """Describes a budget of which pods that are not stored yet take the rest."""
    why = f"pods that are about to be stored take the rest; try again in {retry_s} s"
    return clipped(f"{exceeded(title, shortages)}: {why}", MAX_MESSAGE_BYTES)


def waits_for(blocked: BlockedPod, title: str) -> str:
    """Describes what a pod waits for in the budget of this title, and behind which pods."""
    return clipped("; ".join(_reasons(blocked, title)), MAX_MESSAGE_BYTES)


def _reasons(blocked: BlockedPod, title: str) -> Iterator[str]:
    if blocked.obstacle:
        yield f"quota {title} cannot be checked now: {blocked.obstacle}"
    if blocked.shortages:
        yield f"next in the queue: {exceeded(title, blocked.shortages)}"
    for before in dict.fromkeys((pod.namespace, pod.pod) for pod in blocked.behind.values()):
        keys = [key for key, pod in blocked.behind.items() if (pod.namespace, pod.pod) == before]
        amounts = ", ".join(printable(key, _KEY_CHARS) for key in keys)
        who = _named(before, blocked.waiting.namespace)
        yield f"behind {who}, which waits for the same of quota {title}: {amounts}"


def _named(pod: tuple[str, str], namespace: str) -> str:
    """Names a pod to those who may read a namespace: they may not read others."""
    return f"pod {'/'.join(pod)}" if pod[0] == namespace else "a pod of another namespace"


def uncountable(title: str, what: str) -> str:
    """Explains why a budget refuses a pod whose use of a limited amount is unknown."""
    return f"quota {title} limits {what}, and this pod's depends on its card; request {_KNOWN[what]}, or whole cards"


def uncounted_devices(title: str, field: str) -> str:
    """Explains why a budget refuses a pod that may get GPUs by Dynamic Resource Allocation."""
    return (
        f"quota {title} cannot count devices of Dynamic Resource Allocation ({printable(field, _FIELD_CHARS)});"
        f" request whole cards by {names.NVIDIA_GPU}, which nodes of a driver have too, or use a namespace without"
        f" a {names.GPU_QUOTA}"
    )


def uncounted_models(title: str) -> str:
    """Explains why a budget with limits by model keeps a pod off the nodes of a driver."""
    return f"quota {title} has limits by card model, and the models of this node's cards are known to its driver alone"


_KNOWN: Final[Mapping[str, str]] = {CORES: "cores, not slices", MEMORY: "an amount of memory"}


_PARTS: Final[tuple[tuple[str, Callable[[Shortage], int]], ...]] = (
    ("requested", lambda each: each.wanted),
    ("used", lambda each: each.used),
    ("limited", lambda each: each.hard),
)


def _key(shortage: Shortage) -> str:
    return printable(shortage.key, _KEY_CHARS)


def _needed(shortage: Shortage) -> str:
    said = _WORDS[AmountKey.parse(shortage.key).what]
    free = max(shortage.hard - shortage.used, 0)
    missing = amount(shortage.key, shortage.missing)
    return f"{missing} more needed: {said(shortage.wanted)} asked, {said(free)} free"


def amount(key: str, number: int) -> str:
    """Formats an amount like a quota object."""
    if number == 0 or AmountKey.parse(key).what != MEMORY:
        return str(number)
    return f"{number // _MIB_OF_GIB}Gi" if number % _MIB_OF_GIB == 0 else f"{number}Mi"


def _counted(one: str) -> Callable[[int], str]:
    return lambda number: f"{number} {one}{'' if number == 1 else 's'}"


_WORDS: Final[Mapping[str, Callable[[int], str]]] = {
    CORES: lambda number: f"{number / WHOLE_CARD:.2f} card",
    MEMORY: lambda number: f"{number / _MIB_OF_GIB:g} GiB",
    CARDS: _counted("whole card"),
    SHARES: _counted("share"),
}
