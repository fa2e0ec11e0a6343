"""Makes the table of the strengths of usual cards."""

from __future__ import annotations

from typing import Final

from docs.tables import table
from extender.packing.strength import strength

_USUAL: Final = (
    *(("A2", 16), ("P100", 16), ("T4", 16), ("RTX 2080 Ti", 11), ("V100", 16), ("L4", 24), ("A10", 24)),
    *(("RTX 3090", 24), ("V100", 32), ("RTX 4090", 24), ("A100", 40), ("L40S", 48), ("A100", 80), ("H100", 80)),
    *(("H200", 141), ("B200", 180)),
)


def strengths() -> str:
    rows = [(model, f"{gib} GB", f"{strength(model, gib * 1024):.1f}") for model, gib in _USUAL]
    return table(("card", "memory", "strength"), rows)
