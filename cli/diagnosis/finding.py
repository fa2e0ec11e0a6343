"""A check, and its finding: where, got, rule, fix, the command that fixes it, and the check that explains it."""

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
    """A rule broken in one place.

    Attributes:
        command: for a shell; empty if no command fixes it.
        about: the process, and for an agent also the node, such as `halfcard-agent/gpu-1`; empty if it concerns all.
        by: the processes that prevent it while they work; that of `about` if none is named.
    """

    where: str
    got: str
    fix: str
    command: str = ""
    about: str = ""
    by: tuple[str, ...] = ()

    def may_explain(self, symptom: FoundFault) -> bool:
        """Returns whether this is about a process that prevents the symptom while it works."""
        return any(_is_same(self.about, process) for process in symptom.by or (symptom.about,))


def _is_same(one: str, other: str) -> bool:
    """Compares two processes; one without a node is on every node, and the empty one is any process."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return not one or not other or all(a == b for a, b in pairs)


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
    """A fault with the rule that it breaks; `cause` is the check that explains it, empty if none does."""

    check: str
    severity: FindingSeverity
    where: str
    got: str
    rule: str
    fix: str
    command: str
    cause: str = ""


def several(names: Sequence[str], what: str) -> str:
    """Formats `3 nodes (a, b, c)`; of many, the first."""
    listed = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'} ({listed})"
