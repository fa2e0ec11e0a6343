"""What a check is and what it tells: where, got, rule, fix, and the command that mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from .snapshot import Snapshot

_MOST_NAMED: Final = 3


class FindingSeverity(StrEnum):
    BROKEN = "broken"
    WARNING = "warning"
    NOTE = "note"


class FoundFault(NamedTuple):
    """A rule broken in one place; `command` is for a shell, and empty where no command mends it."""

    where: str
    got: str
    fix: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A row of the table.

    Attributes:
        name: stable for ever, so that pipelines can count on it.
        rule: what should be, in one clause.
        why: the reason, for the page.
        unless: names of checks whose finding explains this one's: a symptom is not told beside its cause.
    """

    name: str
    severity: FindingSeverity
    rule: str
    why: str
    look: Callable[[Snapshot], Iterable[FoundFault]]
    unless: tuple[str, ...] = ()


class Finding(NamedTuple):
    check: str
    severity: FindingSeverity
    where: str
    got: str
    rule: str
    fix: str
    command: str


def several(names: Sequence[str], what: str) -> str:
    """As `3 nodes (a, b, c)`; of many, the first."""
    listed = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'} ({listed})"
