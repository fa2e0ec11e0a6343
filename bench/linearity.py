"""Whether the time of a decision grows no faster than the pod: from its bytes to the answer's, in this process."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping
from typing import Final

from admission import wire
from admission.dispatch import decide
from admission.policy import AdmissionPolicy
from admission.writes import decode_write
from halfcard import names
from halfcard.cluster_view import NOTHING_KNOWN

from . import reviews
from .figures import Figure, Part

_POLICY: Final = AdmissionPolicy()
CONTAINERS: Final = (1, 10, 100)
SIZES: Final = (100_000, 1_000_000, 3_000_000)
MOST_GROWTH: Final = 3.0
"""Per container or byte, the largest against the smallest. One quadratic step would show as 30 or more; the
processor's caches, which hold the objects of 100 kB and not those of 3 MB, account for about 2."""


def measure(*, repeats: int = 15) -> Part:
    by_containers = {count: reviews.pod(containers=count) for count in CONTAINERS}
    by_size = {size: reviews.pod_of_size(size) for size in SIZES}
    title = f"CPU time of a decision in process, from the review's bytes to the answer's (best of {repeats})"
    return Part(
        title,
        (
            *_figures("container", "containers", by_containers, repeats),
            *_figures("byte", "bytes", by_size, repeats),
        ),
    )


def _figures(one: str, many: str, pods: Mapping[int, reviews.Json], repeats: int) -> list[Figure]:
    figures, per_one = [], []
    for amount, pod in pods.items():
        body = reviews.body(reviews.pod_review(pod))
        gc.freeze()  # as the service does after its start: only what the decision makes is collected
        seconds = min(_seconds(reviews.unlike(body, number)) for number in range(repeats))
        real = len(body) if many == "bytes" else amount
        figures.append(Figure(f"{amount:,} {many}: mutate", seconds * 1000, "ms", digits=3))
        per_one.append(seconds / real)
    print(f"  linearity: {many} done", file=sys.stderr)
    growth = per_one[-1] / per_one[0]
    return [*figures, Figure(f"time per {one}, the largest against the smallest", growth, "x", MOST_GROWTH)]


def _seconds(body: bytes) -> float:
    began = time.process_time()
    review = wire.read(body)
    write = decode_write(review.request, _POLICY)
    wire.answer(review, decide(names.MUTATE_PODS_PATH, write, _POLICY, NOTHING_KNOWN))
    return time.process_time() - began
