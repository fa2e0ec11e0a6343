"""Remembers which versions of the libraries were tried with which drivers, and with what result.

Invariant: only what has passed its trial is given to containers. A pass holds, over restarts too, until the files
change; a failure is tried again each minute, since a card may have been full.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from .driver_files import TrialSubject

_AGAIN_AFTER_S: Final = 60.0
_MOST_PASSES: Final = 8
_NOT_TRIED: Final = "the isolation libraries have not been tried with the node's driver yet"


ROOM_MIB: Final = 1024
"""A context of CUDA, and what is tried: with so much free, no program on the card notices."""


def card_to_try(free_mib: Mapping[str, int]) -> str:
    """Returns the card with the most memory free; empty where none has enough."""
    return max((card for card, free in free_mib.items() if free >= ROOM_MIB), key=free_mib.__getitem__, default="")


class _Failure(NamedTuple):
    why: str
    at: float


class Trials:
    """The trials of a node.

    Attributes:
        attempt: tries a subject; returns why it fails, empty where it does not.
        record: the file with the passes.
        now: returns the time in seconds.
    """

    def __init__(
        self, attempt: Callable[[TrialSubject], Awaitable[str]], record: Path, now: Callable[[], float]
    ) -> None:
        self._attempt = attempt
        self._record = record
        self._now = now
        self._passes = _read(record)
        self._failures: dict[str, _Failure] = {}

    def why_not(self, subject: TrialSubject) -> str:
        """Returns why a subject does not hold containers; empty where it has passed."""
        key = subject.key
        if key in self._passes:
            return ""
        failure = self._failures.get(key)
        return failure.why if failure is not None else _NOT_TRIED

    async def run(self, subjects: Iterable[TrialSubject]) -> None:
        """Tries what is due."""
        for subject in dict.fromkeys(subjects):
            if self._is_due(subject.key):
                self._note(subject.key, await self._attempt(subject))

    def _is_due(self, key: str) -> bool:
        failure = self._failures.get(key)
        return key not in self._passes and (failure is None or self._now() - failure.at >= _AGAIN_AFTER_S)

    def _note(self, key: str, why: str) -> None:
        if why:
            self._failures[key] = _Failure(why, self._now())
            return
        self._failures.pop(key, None)
        self._passes = [*self._passes, key][-_MOST_PASSES:]
        _write(self._record, self._passes)


def _read(record: Path) -> list[str]:
    try:
        return record.read_text().splitlines()
    except (OSError, ValueError):
        return []


def _write(record: Path, passes: Iterable[str]) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    draft = record.with_name(record.name + ".new")
    draft.write_text("".join(f"{each}\n" for each in passes))
    draft.rename(record)
