"""The ledger of a budget: which pods may still be admitted, whatever fails in between and however many ask at once.

Invariant: committed plus open never exceed what is allowed, and only `reserve` raises them. A ledger is one object of
the API server that is replaced as a whole, in the version that was read: each function takes a ledger and returns the
one to write, which is valid for that version only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from .amount_key import label_value, limit_key

Amounts = Mapping[str, int]
"""Amounts by the text of their `AmountKey`."""

MOST_OPEN_OF_ONE: Final = 100
"""In a budget of several namespaces. Each try of a create has a uid of its own and holds its part until it expires: a
caller that tries again and again would hold all of what belongs to others."""

MOST_OPEN: Final = 1000
"""An object that is larger takes longer to write."""

MOST_VALUES: Final = 5000
"""Of a label whose values have an amount each. Tenants write labels, and an object has an end."""

_AT: Final = "@"


class Entry(NamedTuple):
    """The charge of one pod; its name is for messages."""

    namespace: str
    pod: str
    cost: Amounts


class Ledger(NamedTuple):
    """Attributes:
    hard: what is allowed; a key that is missing is counted and not limited.
    is_ready: whether a leader has counted once; before that the ledger grants nothing.
    epoch: raised by each new leader; a leader writes only in its own epoch.
    committed: what stored pods hold.
    open: reservations of pods that may still be stored, by uid, or bound, by `binding_of`.
    late: stored pods that bypassed the ledger, by uid, while it is exceeded.
    of: the uid of the quota. Another quota of the same name starts with an empty ledger.
    lent: parts of the allowed amounts, by the name of the borrowing ledger.
    borrowed: additions to the allowed amounts, by the name of the lending ledger.
    """

    hard: Amounts
    is_ready: bool = False
    epoch: int = 0
    committed: Mapping[str, int] = {}
    open: Mapping[str, Entry] = {}
    late: frozenset[str] = frozenset()
    of: str = ""
    lent: Mapping[str, Amounts] = {}
    borrowed: Mapping[str, Amounts] = {}


class Shortage(NamedTuple):
    """A shortage of one counted amount."""

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
    """The answer is not known yet, and the same call may be repeated; the text is a reason for people."""


class LostLeadership(Exception):
    """Another replica is the leader now."""


def used(ledger: Ledger) -> Counter[str]:
    """Adds what stored pods hold to all reservations, however old."""
    return sum_of([ledger.committed, *[entry.cost for entry in ledger.open.values()]])


def allowed(ledger: Ledger) -> Amounts:
    """Returns the limits, less what is lent, plus what is borrowed."""
    if not ledger.lent and not ledger.borrowed:
        return ledger.hard
    less, more = sum_of(ledger.lent.values()), sum_of(ledger.borrowed.values())
    return {key: hard - less[key] + more[key] for key, hard in ledger.hard.items()}


def free(ledger: Ledger) -> Amounts:
    """Returns what is free of the limits for all pods together; negative where more is used than allowed."""
    found = used(ledger)
    return {key: hard - found[key] for key, hard in allowed(ledger).items()}


def over(ledger: Ledger) -> dict[str, int]:
    """Returns by how much use exceeds the limits, for instance after a limit was lowered."""
    return {each.key: each.missing for each in _asked(allowed(ledger), used(ledger), {}) if each.missing > 0}


def shortages(ledger: Ledger, cost: Amounts) -> list[Shortage]:
    return _short(allowed(ledger), cost, used(ledger))


def _short(limits: Amounts, cost: Amounts, found: Amounts) -> list[Shortage]:
    return [each for each in _asked(limits, cost, found) if each.wanted > 0 and each.missing > 0]


def _asked(limits: Amounts, cost: Amounts, found: Amounts) -> list[Shortage]:
    """Returns the shortages of limited amounts."""
    hard = {key: limits.get(limit_key(key)) for key in cost}
    return [Shortage(key, cost[key], found.get(key, 0), limit) for key, limit in hard.items() if limit is not None]


# --- every replica ----------------------------------------------------------------------------------------------------


class Crowd:
    """A batch of calls on one ledger; the sum of the reservations is computed once for all of them.

    `most_of_one` is how many pods of one namespace may have open reservations.
    """

    def __init__(self, ledger: Ledger, most_of_one: int = MOST_OPEN_OF_ONE) -> None:
        self._before = ledger
        self._most_of_one = most_of_one
        self._allowed = allowed(ledger)
        self._used = used(ledger)
        self._open = dict(ledger.open)
        self._of_one = Counter(entry.namespace for entry in self._open.values())
        self._values = _values(self._used)

    @property
    def ledger(self) -> Ledger:
        """The ledger to write; the same object as before where nothing was reserved, so that nothing need be
        written.
        """
        is_same = len(self._open) == len(self._before.open)
        return self._before if is_same else self._before._replace(open=dict(self._open))

    def reserve(self, uid: str, entry: Entry) -> bool:
        """Reserves a charge; returns whether the reservation is new.

        Raises:
            Full: the charge does not fit; certain where the ledger was read after the call began.
            Busy: the call may succeed later.
        """
        if uid in self._open:
            return False
        self.check(uid, entry)
        self._open[uid] = entry
        self._used.update(entry.cost)
        self._of_one[entry.namespace] += 1
        self._values.update(_values(entry.cost))
        return True

    def check(self, uid: str, entry: Entry) -> None:
        """Raises like `reserve`, and reserves nothing."""
        if uid in self._open:
            return
        if not self._before.is_ready:
            raise Busy("nobody has counted yet what is in use")
        if short := _short(self._allowed, entry.cost, self._used):
            raise Full(short)
        self._check_caps(entry.namespace)
        self._check_values(entry.cost)

    def free(self) -> Amounts:
        """Returns what is free of the limits for all pods together."""
        return {key: hard - self._used[key] for key, hard in self._allowed.items()}

    def allow(self, more: Amounts) -> None:
        """Treats an amount as borrowed; a negative amount as lent."""
        self._allowed = {key: hard + more.get(key, 0) for key, hard in self._allowed.items()}

    def _check_caps(self, namespace: str) -> None:
        if self._of_one[namespace] >= self._most_of_one:
            raise Busy(f"{self._of_one[namespace]} pods of namespace {namespace} are about to be stored")
        if len(self._open) >= MOST_OPEN:
            raise Busy(f"{len(self._open)} pods are about to be stored")

    def _check_values(self, cost: Amounts) -> None:
        if len(self._values) >= MOST_VALUES and not _values(cost) <= self._values:
            raise Busy(f"pods with {len(self._values)} values of its label are counted, and it counts no more of them")


def _values(cost: Amounts) -> set[str]:
    return {value for key in cost if (value := label_value(key)) is not None}


def reserve(ledger: Ledger, uid: str, entry: Entry, most_of_one: int = MOST_OPEN_OF_ONE) -> Ledger:
    """For one alone. Raises as a crowd does."""
    crowd = Crowd(ledger, most_of_one)
    crowd.reserve(uid, entry)
    return crowd.ledger


def release(ledger: Ledger, uid: str) -> Ledger:
    """Releases a reservation. Only for a caller that made it in the same call, knows that it was written, and refused
    the pod.
    """
    return without(ledger, (uid,))


def binding_of(uid: str, attempt: str) -> str:
    """Names the reservation of one attempt to bind a pod."""
    return f"{uid}{_AT}{attempt}"


def uid_of(reservation: str) -> str:
    return reservation.partition(_AT)[0]


def is_of_binding(reservation: str) -> bool:
    return _AT in reservation


# --- who leads --------------------------------------------------------------------------------------------------------


def take_over(ledger: Ledger, of: str = "") -> Ledger:
    """Raises the epoch; it is written before all pods are listed, so that the list has what was committed before."""
    return ledger._replace(epoch=ledger.epoch + 1, of=of, is_ready=ledger.is_ready and ledger.of == of)


class StoredPods(NamedTuple):
    """What the leader knows of charged pods.

    Attributes:
        live: all stored pods that hold something, by uid.
        bound: those that are counted with their nodes.
        strangers: those that were stored without a reservation.
        ended: stored pods that hold nothing any more: their reservations can be dropped.
        total: the sum of all live pods, where it is kept incrementally.
    """

    live: Mapping[str, Entry]
    bound: Collection[str] = ()
    strangers: Collection[str] = ()
    ended: Collection[str] = ()
    total: Amounts | None = None

    def together(self) -> Amounts:
        """Returns the sum at this moment, as a copy: the kept sum changes later."""
        return sum_of(each.cost for each in self.live.values()) if self.total is None else dict(self.total)


def commit(ledger: Ledger, epoch: int, pods: StoredPods) -> Ledger:
    """Commits the live pods as an absolute sum, so that it may be repeated.

    Raises:
        LostLeadership: the epoch is another leader's.
    """
    if ledger.epoch != epoch:
        raise LostLeadership
    left = without(ledger, settled(ledger, pods))
    after = left._replace(is_ready=True, committed=pods.together())
    came = pods.live.keys() & (ledger.late | {*pods.strangers} - ledger.open.keys())
    return after._replace(late=frozenset(came if over(after) else ()))


def settled(ledger: Ledger, pods: StoredPods) -> frozenset[str]:
    """Returns the reservations of pods that are stored, or have been stored and ended."""
    return frozenset(reservation for reservation in ledger.open if _is_settled(reservation, pods))


def _is_settled(reservation: str, pods: StoredPods) -> bool:
    uid = uid_of(reservation)
    return uid in pods.ended or uid in (pods.bound if is_of_binding(reservation) else pods.live)


def without(ledger: Ledger, uids: Collection[str]) -> Ledger:
    return ledger._replace(open={uid: entry for uid, entry in ledger.open.items() if uid not in uids})


def sum_of(amounts: Iterable[Amounts]) -> Counter[str]:
    found: Counter[str] = Counter()
    for each in amounts:
        found.update(each)
    return found
