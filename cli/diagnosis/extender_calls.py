"""Checks that the scheduler's calls reach the extender, by what the scheduler says of pods that wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from halfcard.problems import printable

from .extender_errors import ExtenderError, read_error
from .finding import BROKEN, Check, FoundFault, several
from .snapshot import Snapshot

_WORDS_CHARS: Final = 240


def _failing(snapshot: Snapshot) -> Iterator[FoundFault]:
    """Reports pods with the same error together."""
    waiting: dict[ExtenderError, list[str]] = {}
    for pod in snapshot.pods:
        if pod.asks and (error := read_error(pod.message)) is not None:
            waiting.setdefault(error, []).append(pod.title)
    for error, titles in waiting.items():
        got = f"the scheduler's call of {error.url} fails: {error.why}"
        yield FoundFault(several(titles, "waiting pod"), printable(got, _WORDS_CHARS), error.fix)


CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "scheduler-cannot-call",
        BROKEN,
        "the scheduler's calls reach the extender",
        "Otherwise pods that request cards wait. The scheduler says why in the condition `PodScheduled` of each.",
        _failing,
        unless=("extender-not-led", "service-empty"),
    ),
)
