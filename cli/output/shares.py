"""A pod's part of a card, in words."""

from __future__ import annotations

from extender.explain.inspection import CardHolder
from halfcard.placing.card_usage import CardMode


def share(pod: CardHolder) -> str:
    """Describes a pod's part of a card."""
    match pod.mode:
        case CardMode.EXCLUSIVE:
            return "all of it"
        case CardMode.HALVES:
            return f"half: {pod.memory_mib} MiB" if pod.parts == 1 else "both halves"
        case CardMode.SLICES:
            return f"{pod.parts} time slice{'' if pod.parts == 1 else 's'}"
    return f"{pod.cores} %  {pod.memory_mib} MiB" if pod.cores else f"{pod.memory_mib} MiB"
