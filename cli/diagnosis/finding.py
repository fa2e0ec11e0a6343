"""A check, and its finding: where, got, rule, fix, and the command that fixes it."""

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


BROKEN, WARNING, NOTE = FindingSeverity.BROKEN, FindingSeverity.WARNING, FindingSeverity.NOTE


class FoundFault(NamedTuple):
    """A rule broken in one place; `command` is for a shell, and empty if no command fixes it."""

    where: str
    got: str
    fix: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A row of the table.

    Attributes:
        name: never changes, because pipelines use it.
        rule: the expected state, in one clause.
        why: the reason, for the page.
        unless: names of checks whose finding explains this one: a symptom is not listed next to its cause.
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
    """Formats `3 nodes (a, b, c)`; of many, the first."""
    listed = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'} ({listed})"
