"""How much memory the service holds at start and after many calls, no two of them alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import uvloop

from halfcard import names

from . import reviews
from .connection import post
from .figures import Figure, Part
from .load import drive
from .servers import Server, apart, webhook

MOST_MB: Final = 100.0
MOST_GROWTH_MB: Final = 4.0
_BATCH: Final = 5000


def measure(folder: Path, *, counts: Sequence[int] = (20_000, 100_000)) -> Part:
    with webhook(folder) as server, apart(server):
        held = [server.resident_mb(), *uvloop.run(_after(server, counts))]
    figures = [Figure("at start", held[0], "MB", MOST_MB, 1)]
    figures += [
        Figure(f"after {count:,} calls", resident, "MB", MOST_MB, 1)
        for count, resident in zip(counts, held[1:], strict=True)
    ]
    growth = Figure(f"growth from {counts[0]:,} to {counts[-1]:,}", held[-1] - held[1], "MB", MOST_GROWTH_MB, 1)
    title = "Resident memory of the service (mutate and validate, every pod asks for another amount)"
    return Part(title, [*figures, growth])


async def _after(server: Server, counts: Sequence[int]) -> list[float]:
    held, done = [], 0
    for count in counts:
        while done < count:
            calls = min(_BATCH, count - done)
            await drive(server, _unlike, calls, first=done)
            done += calls
            print(f"  memory: {done:,} of {counts[-1]:,} calls", file=sys.stderr)
        held.append(server.resident_mb())
    return held


_CORES: Final = f'"{names.VCUDA_CORE}":"30"'.encode()
_MEMORY: Final = f'"{names.VCUDA_MEMORY}":"20"'.encode()
_PATHS: Final = (names.MUTATE_PODS_PATH, names.VALIDATE_PODS_PATH)
_TEMPLATES: Final = [post(path, reviews.body(reviews.pod_review(reviews.pod()))) for path in _PATHS]


def _unlike(number: int) -> bytes:
    """Changes name, share and memory of the pod; every request keeps its length."""
    cores, memory = 10 + number % 90, 10 + number // 90 % 90
    request = _TEMPLATES[number % len(_TEMPLATES)].replace(reviews.SERIAL, b"%08d" % number)
    request = request.replace(_CORES, _CORES.replace(b"30", b"%d" % cores))
    return request.replace(_MEMORY, _MEMORY.replace(b"20", b"%d" % memory))
