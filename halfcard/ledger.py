"""Budgets over pods: who may still come, however many ask at once and whatever fails meanwhile.

The law: what is committed and what is open never exceed what is allowed, and `reserve` alone raises them. A ledger is
one object of the API server that is written whole, and only over the version that was read: each function here takes a
ledger and returns the one to write, which is right for that version and no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

Amounts = Mapping[str, int]
"""By what is counted, such as `cores`; `cores per user=alice` counts for her alone, and `cores per user` limits it."""

MOST_OPEN_OF_ONE: Final = 100
MOST_OPEN: Final = 500
"""Each try of a create has a uid of its own and holds its budget until it expires: a caller that tries again and again
would hold all of it."""


class Entry(NamedTuple):
    """What one pod is charged for; its name is for people."""

    namespace: str
    pod: str
    cost: Amounts


class Ledger(NamedTuple):
    """
    Attributes:
        hard: what is allowed; what it does not name is counted and not limited.
        is_ready: whether somebody has led it, before which it grants nothing.
        epoch: raised by whoever comes to lead; nobody folds in another's.
        committed: what stored pods hold, by namespace.
        open: what was promised to pods that may still be stored, by uid.
        late: stored pods that came past the ledger, by uid, while there is too little for them.
        of: whose it is: the uid of a quota. Another quota of the same name begins anew.
    """

    hard: Amounts
    is_ready: bool = False
    epoch: int = 0
    committed: Mapping[str, Amounts] = {}
    open: Mapping[str, Entry] = {}
    late: frozenset[str] = frozenset()
    of: str = ""


class Shortage(NamedTuple):
    """Of one thing that is counted."""

    key: str
    wanted: int
    used: int
    hard: int

    @property
    def missing(self) -> int:
        return self.used + self.wanted - self.hard


class Full(Exception):
    """There is too little left; of what, is known."""

    def __init__(self, shortages: Collection[Shortage]) -> None:
        super().__init__(shortages)
        self.shortages = tuple(shortages)


class Busy(Exception):
    """Nobody can say yet, and the same may be asked again; the text is a reason for people."""


class Deposed(Exception):
    """Somebody else leads by now."""


def used(ledger: Ledger) -> Counter[str]:
    """By stored pods and by those that may come, however old the promise."""
    return _sum([*ledger.committed.values(), *[entry.cost for entry in ledger.open.values()]])


def over(ledger: Ledger) -> dict[str, int]:
    """By how much more is used than allowed, as after somebody has lowered what is allowed."""
    return {each.key: each.missing for each in _asked(ledger, used(ledger), {}) if each.missing > 0}


def shortages(ledger: Ledger, cost: Amounts) -> list[Shortage]:
    return [each for each in _asked(ledger, cost, used(ledger)) if each.wanted > 0 and each.missing > 0]


def _asked(ledger: Ledger, cost: Amounts, found: Amounts) -> list[Shortage]:
    """Of what is limited."""
    limits = {key: ledger.hard.get(key.partition("=")[0]) for key in cost}
    return [Shortage(key, cost[key], found.get(key, 0), hard) for key, hard in limits.items() if hard is not None]


# --- every replica ----------------------------------------------------------------------------------------------------


def reserve(ledger: Ledger, uid: str, entry: Entry) -> Ledger:
    """The very same ledger where the pod has its promise already: there is nothing to write.

    Raises:
        Full: and it is certain, where the ledger was read after the pod came.
        Busy: later perhaps.
    """
    if uid in ledger.open:
        return ledger
    if not ledger.is_ready:
        raise Busy("nobody has counted yet what is in use")
    if short := shortages(ledger, entry.cost):
        raise Full(short)
    _check_caps(ledger, entry.namespace)
    return ledger._replace(open={**ledger.open, uid: entry})


def _check_caps(ledger: Ledger, namespace: str) -> None:
    of_one = sum(entry.namespace == namespace for entry in ledger.open.values())
    if of_one >= MOST_OPEN_OF_ONE:
        raise Busy(f"{of_one} pods of namespace {namespace} are about to be stored")
    if len(ledger.open) >= MOST_OPEN:
        raise Busy(f"{len(ledger.open)} pods are about to be stored")


def cancel(ledger: Ledger, uid: str) -> Ledger:
    """Only for who has made this promise in the same call, knows that it was written, and has not allowed the pod."""
    return without(ledger, (uid,))


# --- who leads --------------------------------------------------------------------------------------------------------


def take_over(ledger: Ledger, of: str = "") -> Ledger:
    """First this is written, then all pods are listed: what the one before us has folded is among them."""
    return ledger._replace(epoch=ledger.epoch + 1, of=of, is_ready=ledger.is_ready and ledger.of == of)


def fold(ledger: Ledger, epoch: int, live: Mapping[str, Entry], strangers: Collection[str] = ()) -> Ledger:
    """As many as live are committed, absolutely, so that the same may be folded again.

    `live` are all stored pods that hold something, and of them `strangers` came without a promise.

    Raises:
        Deposed: this is another one's epoch.
    """
    if ledger.epoch != epoch:
        raise Deposed
    folded = without(ledger, live.keys())._replace(is_ready=True, committed=_by_namespace(live.values()))
    came = live.keys() & (ledger.late | {*strangers} - ledger.open.keys())
    return folded._replace(late=frozenset(came if over(folded) else ()))


def without(ledger: Ledger, uids: Collection[str]) -> Ledger:
    return ledger._replace(open={uid: entry for uid, entry in ledger.open.items() if uid not in uids})


def _by_namespace(entries: Iterable[Entry]) -> dict[str, Amounts]:
    found: dict[str, Counter[str]] = {}
    for entry in entries:
        found.setdefault(entry.namespace, Counter()).update(entry.cost)
    return {**found}


def _sum(amounts: Iterable[Amounts]) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in amounts:
        found.update(each)
    return found
