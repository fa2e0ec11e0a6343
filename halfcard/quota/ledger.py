"""The ledger of a budget: which charges still fit, whatever fails in between and however many calls come at once.

Invariant: `reserve` never makes committed and reserved amounts together exceed the limits. A ledger is one object of
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

MAX_RESERVATIONS_OF_NAMESPACE: Final = 100
"""Limit for one namespace in a budget of several. Each attempt to create a pod has another uid, and its reservation
stays until it expires: a caller that retries all the time would use up the budget of the others."""

MAX_RESERVATIONS: Final = 1000
"""Limit for one ledger: a larger object takes longer to write."""

MAX_LABEL_VALUES: Final = 5000
"""Limit for the label of a ledger: tenants write its values, and the size of an object is limited."""

USAGE_UNKNOWN: Final = "quota usage is still being initialised"

_BIND, _CREATE = "@", "#"


class Entry(NamedTuple):
    """The charge of one pod; its name is for messages."""

    namespace: str
    pod: str
    charge: Amounts


class Ledger(NamedTuple):
    """Attributes:
    hard: the limits; a key that is missing is counted and not limited.
    is_ready: whether a leader has counted all pods; before that nothing can be reserved.
    epoch: raised by each new leader; a leader writes only in its own epoch.
    committed: the charge of all stored pods.
    reservations: by the `create_reservation` of a pod that may still be stored, the uid of one whose gate is being
        removed, or the `bind_reservation` of one being bound.
    late: the uids of stored pods that bypassed the ledger, while it is exceeded.
    quota_uid: another quota of the same name starts with an empty ledger.
    lent: parts of the limits, by the name of the borrowing ledger.
    borrowed: additions to the limits, by the name of the lending ledger.
    """

    hard: Amounts
    is_ready: bool = False
    epoch: int = 0
    committed: Mapping[str, int] = {}
    reservations: Mapping[str, Entry] = {}
    late: frozenset[str] = frozenset()
    quota_uid: str = ""
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


class Exceeded(Exception):
    """The charge does not fit; `shortages` says by how much."""

    def __init__(self, shortages: Collection[Shortage]) -> None:
        super().__init__(shortages)
        self.shortages = tuple(shortages)


class Contended(Exceeded):
    """The charge does not fit now, and only because of reservations: it may fit once they are settled."""


class Busy(Exception):
    """The answer is not known yet, and the same call may be repeated; the text is the reason, for messages."""


class Crowded(Busy):
    """There are too many open reservations for one more."""


class Uncounted(Busy):
    """No leader has counted the pods yet."""

    def __init__(self) -> None:
        super().__init__(USAGE_UNKNOWN)


class LostLeadership(Exception):
    """Another replica is the leader now."""


def used(ledger: Ledger) -> Counter[str]:
    """Adds up the committed amounts and all reservations, however old."""
    return sum_of([ledger.committed, *[entry.charge for entry in ledger.reservations.values()]])


def allowed(ledger: Ledger) -> Amounts:
    """Returns the limits, less what is lent, plus what is borrowed."""
    if not ledger.lent and not ledger.borrowed:
        return ledger.hard
    less, more = sum_of(ledger.lent.values()), sum_of(ledger.borrowed.values())
    return {key: hard - less[key] + more[key] for key, hard in ledger.hard.items()}


def free(ledger: Ledger) -> Amounts:
    """Returns what is free of the limits for all pods together; negative where they are exceeded."""
    usage = used(ledger)
    return {key: hard - usage[key] for key, hard in allowed(ledger).items()}


def excess(ledger: Ledger) -> dict[str, int]:
    """Returns by how much usage exceeds the limits, for instance after a limit was lowered."""
    return {each.key: each.missing for each in _compared(allowed(ledger), used(ledger), {}) if each.missing > 0}


def shortages(ledger: Ledger, charge: Amounts) -> list[Shortage]:
    """Returns what is missing for this charge; empty where it fits."""
    return _shortages(allowed(ledger), charge, used(ledger))


def lasting_shortages(ledger: Ledger, charge: Amounts) -> list[Shortage]:
    """Returns what is missing for this charge even if every reservation is released."""
    return _shortages(allowed(ledger), charge, ledger.committed)


def _shortages(limits: Amounts, charge: Amounts, usage: Amounts) -> list[Shortage]:
    return [each for each in _compared(limits, charge, usage) if each.wanted > 0 and each.missing > 0]


def _compared(limits: Amounts, charge: Amounts, usage: Amounts) -> list[Shortage]:
    """Compares the limited amounts of a charge; an amount that fits has nothing or less missing."""
    hard = {key: limits.get(limit_key(key)) for key in charge}
    return [Shortage(key, charge[key], usage.get(key, 0), limit) for key, limit in hard.items() if limit is not None]


# --- every replica ----------------------------------------------------------------------------------------------------


class ReservationBatch:
    """Several calls on one ledger; the reservations are added up once for all of them.

    `max_of_namespace` limits the reservations of each namespace.
    """

    def __init__(self, ledger: Ledger, max_of_namespace: int = MAX_RESERVATIONS_OF_NAMESPACE) -> None:
        self._before = ledger
        self._max_of_namespace = max_of_namespace
        self._allowed = allowed(ledger)
        self._used = used(ledger)
        self._reservations = dict(ledger.reservations)
        self._of_namespace = Counter(entry.namespace for entry in self._reservations.values())
        self._label_values = _label_values(self._used)

    @property
    def ledger(self) -> Ledger:
        """The ledger to write; the same object as before where nothing was reserved."""
        is_same = len(self._reservations) == len(self._before.reservations)
        return self._before if is_same else self._before._replace(reservations=dict(self._reservations))

    def reserve(self, uid: str, entry: Entry) -> bool:
        """Reserves a charge; returns whether the reservation is new.

        Raises:
            Exceeded: the committed amounts leave too little; certain where the ledger was read after the call began.
            Contended: other reservations take the rest.
            Busy: the call may succeed later.
        """
        if self.has(uid):
            return False
        self.check(uid, entry)
        self._reservations[uid] = entry
        self._used.update(entry.charge)
        self._of_namespace[entry.namespace] += 1
        self._label_values.update(_label_values(entry.charge))
        return True

    def has(self, uid: str) -> bool:
        """Returns whether the reservation of this name exists."""
        return uid in self._reservations

    def check(self, uid: str, entry: Entry) -> None:
        """Raises like `reserve`, and reserves nothing."""
        if self.has(uid):
            return
        self._check_counted()
        if short := self.shortages(entry):
            lasts = _shortages(self._allowed, entry.charge, self._before.committed)
            raise Exceeded(short) if lasts else Contended(short)
        self._check_size(entry)

    def shortages(self, entry: Entry) -> list[Shortage]:
        """Returns what is missing for this charge; empty where it fits."""
        return _shortages(self._allowed, entry.charge, self._used)

    def obstacle(self, entry: Entry) -> str:
        """Returns why nothing can be reserved now, whatever is free; empty where it can."""
        try:
            self._check_counted()
            self._check_size(entry)
        except Busy as busy:
            return str(busy)
        return ""

    def free(self) -> Amounts:
        """Returns what is free of the limits for all pods together."""
        return {key: hard - self._used[key] for key, hard in self._allowed.items()}

    def allow(self, more: Amounts) -> None:
        """Treats an amount as borrowed; a negative amount as lent."""
        self._allowed = {key: hard + more.get(key, 0) for key, hard in self._allowed.items()}

    def _check_counted(self) -> None:
        if not self._before.is_ready:
            raise Uncounted

    def _check_size(self, entry: Entry) -> None:
        self._check_number(entry.namespace)
        self._check_label_values(entry.charge)

    def _check_number(self, namespace: str) -> None:
        if (count := self._of_namespace[namespace]) >= self._max_of_namespace:
            raise Crowded(f"{count} pods of namespace {namespace} are about to be stored, which is the limit")
        if (count := len(self._reservations)) >= MAX_RESERVATIONS:
            raise Crowded(f"{count} pods are about to be stored, which is the limit")

    def _check_label_values(self, charge: Amounts) -> None:
        if len(self._label_values) >= MAX_LABEL_VALUES and not _label_values(charge) <= self._label_values:
            raise Busy(f"it counts pods with {len(self._label_values)} values of its label, which is the limit")


def _label_values(amounts: Amounts) -> set[str]:
    return {value for key in amounts if (value := label_value(key)) is not None}


def reserve(ledger: Ledger, uid: str, entry: Entry, max_of_namespace: int = MAX_RESERVATIONS_OF_NAMESPACE) -> Ledger:
    """Reserves one charge. Raises like a batch."""
    batch = ReservationBatch(ledger, max_of_namespace)
    batch.reserve(uid, entry)
    return batch.ledger


def create_reservation(uid: str, call: str) -> str:
    """Names the reservations of one call of the webhook: no other call relies on them."""
    return f"{uid}{_CREATE}{call}"


def bind_reservation(uid: str, attempt: str) -> str:
    """Names the reservation of one attempt to bind a pod."""
    return f"{uid}{_BIND}{attempt}"


def pod_uid(reservation: str) -> str:
    return reservation.partition(_CREATE)[0].partition(_BIND)[0]


def is_bind_reservation(reservation: str) -> bool:
    return _BIND in reservation


# --- the leader -------------------------------------------------------------------------------------------------------


def take_over(ledger: Ledger, quota_uid: str = "") -> Ledger:
    """Raises the epoch; it is written before all pods are listed, so that the list has what was committed before."""
    is_ready = ledger.is_ready and ledger.quota_uid == quota_uid
    return ledger._replace(epoch=ledger.epoch + 1, quota_uid=quota_uid, is_ready=is_ready)


class StoredPods(NamedTuple):
    """What the leader knows of charged pods.

    Attributes:
        live: all stored pods with a charge, by uid.
        total: the sum of their charges.
        bound: those whose charge includes their location.
        unreserved: those that were stored without a reservation.
        ended: stored pods without a charge any more; their reservations are released.
    """

    live: Mapping[str, Entry]
    total: Amounts
    bound: Collection[str] = ()
    unreserved: Collection[str] = ()
    ended: Collection[str] = ()


def commit(ledger: Ledger, epoch: int, pods: StoredPods) -> Ledger:
    """Commits the live pods as an absolute sum, so that it may be repeated.

    Raises:
        LostLeadership: the epoch is another leader's.
    """
    if ledger.epoch != epoch:
        raise LostLeadership
    left = without(ledger, settled(ledger, pods))
    after = left._replace(is_ready=True, committed=dict(pods.total))  # a copy: the total changes later
    reserved = {pod_uid(name) for name in ledger.reservations if not is_bind_reservation(name)}
    late = pods.live.keys() & (ledger.late | {*pods.unreserved} - reserved)
    return after._replace(late=frozenset(late if excess(after) else ()))


def settled(ledger: Ledger, pods: StoredPods) -> frozenset[str]:
    """Returns the reservations of pods that are stored (for a bind: bound), or were stored and have ended."""
    return frozenset(reservation for reservation in ledger.reservations if _is_settled(reservation, pods))


def _is_settled(reservation: str, pods: StoredPods) -> bool:
    uid = pod_uid(reservation)
    return uid in pods.ended or uid in (pods.bound if is_bind_reservation(reservation) else pods.live)


def without(ledger: Ledger, uids: Collection[str]) -> Ledger:
    """Releases reservations: only where it is certain that their pods were not stored, or are counted."""
    return ledger._replace(reservations={uid: entry for uid, entry in ledger.reservations.items() if uid not in uids})


def sum_of(amounts: Iterable[Amounts]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in amounts:
        total.update(each)
    return total
