"""Pods that wait for room in their quotas, and who of them comes next.

The law: nobody passes one that waits for the same quota: who is first blocks those behind him, however small they are.
Priority goes before age.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .ledger import Busy, Crowd, Entry, Full, Ledger, Shortage


class Waiting(NamedTuple):
    """One pod behind the gate.

    Attributes:
        created: as the API server writes times, which sort as text.
        entries: what it would be charged for in each ledger, by the ledger's name.
    """

    uid: str
    namespace: str
    pod: str
    priority: int
    created: str
    entries: Mapping[str, Entry]


class Blocked(NamedTuple):
    """Who is first of those that wait for a ledger, and what it has too little of; nothing where nobody can say yet."""

    waiting: Waiting
    ledger: str
    shortages: tuple[Shortage, ...]


class Queue(NamedTuple):
    openable: tuple[Waiting, ...]
    first: tuple[Blocked, ...]


def queue(waiting: Iterable[Waiting], ledgers: Mapping[str, Ledger]) -> Queue:
    crowds = {name: Crowd(ledger) for name, ledger in ledgers.items()}
    blocked: set[str] = set()
    openable, first = [], []
    for each in in_order(waiting):
        if not blocked.isdisjoint(each.entries):
            blocked |= each.entries.keys()
            continue
        obstacle = _obstacle(each, crowds)
        if obstacle is None:
            openable.append(each)
        else:
            first.append(obstacle)
            blocked |= each.entries.keys()
    return Queue(tuple(openable), tuple(first))


def in_order(waiting: Iterable[Waiting]) -> list[Waiting]:
    return sorted(waiting, key=lambda each: (-each.priority, each.created, each.namespace, each.pod))


def _obstacle(waiting: Waiting, crowds: Mapping[str, Crowd]) -> Blocked | None:
    """None where there was room everywhere, which is taken then."""
    for name, entry in waiting.entries.items():
        crowd = crowds.get(name)
        if crowd is None:
            return Blocked(waiting, name, ())
        try:
            crowd.check(waiting.uid, entry)
        except Full as full:
            return Blocked(waiting, name, full.shortages)
        except Busy:
            return Blocked(waiting, name, ())
    for name, entry in waiting.entries.items():
        crowds[name].reserve(waiting.uid, entry)
    return None
