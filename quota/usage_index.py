"""Holds what one budget counts of stored pods, updated as they change: the work is proportional to the changes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from halfcard.quota.charge import COUNTED
from halfcard.quota.ledger import Entry

TOP: Final = 10

_Rank = tuple[tuple[int, ...], str, str, str]


class CountedPod(NamedTuple):
    """The count of one pod; `is_bound` where it is counted with its node."""

    entry: Entry
    is_bound: bool = False


class TopPods(NamedTuple):
    """The number of pods, and the entries with the largest charges."""

    pods: int = 0
    entries: Sequence[Entry] = ()


class ChargeTally:
    """The charges of some pods: their sum, and the largest.

    Attributes:
        total: the sum of all charges.
        changes: how often it has changed.
    """

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self.changes = 0
        self._ranked: list[_Rank] = []

    def add(self, uid: str, entry: Entry) -> None:
        self._count(entry, 1)
        insort(self._ranked, (*rank(entry), uid))

    def drop(self, uid: str, entry: Entry) -> None:
        self._count(entry, -1)
        del self._ranked[bisect_left(self._ranked, (*rank(entry), uid))]

    def top(self, entries: Mapping[str, Entry]) -> TopPods:
        return TopPods(len(self._ranked), [entries[uid] for *_, uid in self._ranked[:TOP]])

    def _count(self, entry: Entry, times: int) -> None:
        self.changes += 1
        for key, amount in entry.charge.items():
            self.total[key] += times * amount
            if not self.total[key]:
                del self.total[key]


class UsageIndex:
    """
    Attributes:
        entries: by the uid of the pod.
        bound: the pods whose charge includes their location.
        arrived: the pods that were added since `clear_arrived` was called with them.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.bound: set[str] = set()
        self.arrived: set[str] = set()
        self._all = ChargeTally()
        self._tallies: defaultdict[str, ChargeTally] = defaultdict(ChargeTally)
        self._touched: set[str] = set()
        self._is_stale = True

    # --- what to count again ------------------------------------------------------------------------------------------

    def mark(self, uids: Iterable[str]) -> None:
        """Marks changed pods."""
        self._touched.update(uids)

    def mark_all(self) -> None:
        """Marks all pods, after the rules of counting have changed."""
        self._is_stale = True

    def take_marked(self, stored: Iterable[str] = ()) -> Collection[str]:
        """Returns the marked pods, once; when all are marked, the counted ones and those in `stored`."""
        found = {*self._touched, *((*stored, *self.entries) if self._is_stale else ())}
        self._touched, self._is_stale = set(), False
        return found

    # --- what is counted ----------------------------------------------------------------------------------------------

    def put(self, uid: str, counted: CountedPod | None) -> None:
        """Sets the count of a pod; None removes it."""
        before = self.entries.get(uid)
        if counted is None:
            self.arrived.discard(uid)
        elif before is None:
            self.arrived.add(uid)
        if before is not None:
            self._drop(uid, before)
        if counted is not None:
            self._add(uid, counted)

    def clear_arrived(self, uids: Iterable[str]) -> None:
        """Removes pods from `arrived`."""
        self.arrived.difference_update(uids)

    @property
    def total(self) -> Counter[str]:
        """The sum of all charges."""
        return self._all.total

    def tally(self, namespace: str) -> ChargeTally:
        """Returns what the pods of one namespace use."""
        return self._tallies[namespace]

    def top(self, namespace: str = "") -> TopPods:
        """Returns the pods with the largest charges, of all namespaces or of one."""
        return (self._tallies[namespace] if namespace else self._all).top(self.entries)

    def _add(self, uid: str, counted: CountedPod) -> None:
        entry = self.entries[uid] = counted.entry
        if counted.is_bound:
            self.bound.add(uid)
        for tally in (self._all, self._tallies[entry.namespace]):
            tally.add(uid, entry)

    def _drop(self, uid: str, entry: Entry) -> None:
        del self.entries[uid]
        self.bound.discard(uid)
        for tally in (self._all, self._tallies[entry.namespace]):
            tally.drop(uid, entry)


def rank(entry: Entry) -> tuple[tuple[int, ...], str, str]:
    """Sorts by cores, then by memory, the largest first."""
    return tuple([-entry.charge.get(key, 0) for key in COUNTED]), entry.namespace, entry.pod
