"""Encodes a mix as a short text for an annotation, so that what was learnt survives a restart.

Invariant: whatever a text contains, decoding it gives classes that pods could have, or nothing.
"""

from __future__ import annotations

import json
from typing import Any, Final

from halfcard.claims import WHOLE_CARD

from .workload_mix import PodClass, WorkloadMix

MOST_CHARS: Final = 16_000
_LONGEST_KIND: Final = 120
"""Lists of models are written by tenants."""
_MOST_CARDS: Final = 1024
_MOST: Final = 2**40


def write_mix(mix: WorkloadMix) -> str:
    """The most frequent kinds, as many as there is room for; counts are rounded to hundredths."""
    rows: list[str] = []
    room = MOST_CHARS - len("[]")
    for kind, count in sorted(mix.kinds, key=lambda item: (-item[1], item[0])):
        row = json.dumps([round(count, 2), *kind[:4], kind.card_mib, ",".join(kind.models)], separators=(",", ":"))
        room -= len(row) + 1
        if room < 0:
            break
        if len(row) <= _LONGEST_KIND:
            rows.append(row)
    return f"[{','.join(rows)}]"


def read_mix(text: str) -> WorkloadMix | None:
    """Decodes a mix; None where nothing in it is plausible."""
    try:
        rows = json.loads(text) if len(text) <= MOST_CHARS else None
    except (ValueError, RecursionError):
        return None
    read = [_read_row(row) for row in rows] if isinstance(rows, list) else []
    kinds = dict(row for row in read if row is not None)
    return WorkloadMix(tuple(kinds.items())) if kinds else None


def _read_row(row: Any) -> tuple[PodClass, float] | None:
    match row:
        case [int() | float() as count, int(cpu), int(memory), int(cards), int(share), int(card_mib), str(models)]:
            kind = PodClass(cpu, memory, cards, share, tuple(model for model in models.split(",") if model), card_mib)
            return (kind, float(count)) if 0 < count < _MOST and _is_possible(kind) else None
    return None


def _is_possible(kind: PodClass) -> bool:
    amounts = (kind.cpu_milli, kind.memory_mib, kind.card_mib)
    return (
        all(0 <= each < _MOST for each in amounts) and 0 <= kind.cards <= _MOST_CARDS and 0 <= kind.share <= WHOLE_CARD
    )
