"""How long the service takes to its ready line: with existing certificates, and the very first time."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median
from typing import Final

from .figures import Figure, Part
from .servers import scratch, webhook

MOST_S: Final = 1.0


def measure(*, repeats: int = 5) -> Part:
    with scratch() as folder:
        first = _start_s(folder)
        again = median(_start_s(folder) for _ in range(repeats))
    print("  start: done", file=sys.stderr)
    return Part(
        "From the command to its ready line",
        (
            Figure("the first time (makes its CA and certificate)", first, "s", MOST_S),
            Figure(f"again (median of {repeats})", again, "s", MOST_S),
        ),
    )


def _start_s(folder: Path) -> float:
    with webhook(folder) as server:
        return server.start_s
