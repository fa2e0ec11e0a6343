"""Encodes a mix as a short text for an annotation of the Lease, so that it survives a restart.

Invariant: any text decodes to classes that pods could have, or to nothing.
"""

from __future__ import annotations

import json
from typing import Any, Final

from halfcard.claims import WHOLE_CARD

from .workload_mix import PodClass, WorkloadMix

MAX_CHARS: Final = 16_000
_MAX_ROW_CHARS: Final = 120
"""Tenants write the lists of models, which may be long."""
_MAX_CARDS: Final = 1024
_MAX_AMOUNT: Final = 2**40


def write_mix(mix: WorkloadMix) -> str:
    """Encodes the most frequent classes, as many as fit; counts are rounded to hundredths."""
    rows: list[str] = []
    room = MAX_CHARS - len("[]")
    for kind, count in sorted(mix.kinds, key=lambda item: (-item[1], item[0])):
        row = json.dumps([round(count, 2), *kind[:4], kind.card_mib, ",".join(kind.models)], separators=(",", ":"))
        room -= len(row) + 1
        if room < 0:
            break
        if len(row) <= _MAX_ROW_CHARS:
            rows.append(row)
    return f"[{','.join(rows)}]"


def read_mix(text: str) -> WorkloadMix | None:
    """Decodes a mix; None where nothing in it is plausible."""
    try:
        rows = json.loads(text) if len(text) <= MAX_CHARS else None
    except (ValueError, RecursionError):
        return None
    read = [_read_row(row) for row in rows] if isinstance(rows, list) else []
    kinds = dict(row for row in read if row is not None)
    return WorkloadMix(tuple(kinds.items())) if kinds else None


def _read_row(row: Any) -> tuple[PodClass, float] | None:
    match row:
        case [int() | float() as count, int(cpu), int(memory), int(cards), int(share), int(card_mib), str(models)]:
            kind = PodClass(cpu, memory, cards, share, tuple(model for model in models.split(",") if model), card_mib)
            return (kind, float(count)) if 0 < count < _MAX_AMOUNT and _is_possible(kind) else None
    return None


def _is_possible(kind: PodClass) -> bool:
    amounts = (kind.cpu_milli, kind.memory_mib, kind.card_mib)
    return (
        all(0 <= each < _MAX_AMOUNT for each in amounts)
        and 0 <= kind.cards <= _MAX_CARDS
        and 0 <= kind.share <= WHOLE_CARD
    )
