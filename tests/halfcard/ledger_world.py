"""A cluster around one ledger: replicas that read late, changing leaders, lost answers, and time.

All that happens to it is in the names of its methods; whether all is well is said by `wrong`. The rules of the ledger
are given to it, so that broken ones can be, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from halfcard.quota import ledger as rules
from halfcard.quota.ledger import Amounts, Busy, Entry, Exceeded, Ledger, LostLeadership, StoredPods, sum_of
from halfcard.quota.reservation_expiry import OpenReservations

CREATE_S: Final = 34.0
"""So long a create may take of the API server's time."""

CORES: Final = "cores"
HARD: Final = 10
ON_MODEL: Final = "cores of model T4"
HARD_ON_MODEL: Final = 6


@dataclass(frozen=True)
class Rules:
    """The rules of the ledger; a test breaks one at a time."""

    reserve: Callable[[Ledger, str, Entry], Ledger] = rules.reserve
    release: Callable[[Ledger, Collection[str]], Ledger] = rules.without
    take_over: Callable[[Ledger], Ledger] = rules.take_over
    commit: Callable[[Ledger, int, StoredPods], Ledger] = rules.commit
    read: Callable[[OpenReservations, float, Collection[str], Collection[str]], OpenReservations] = (
        OpenReservations.read
    )
    void: Callable[[OpenReservations], frozenset[str]] = OpenReservations.expired
    compares: bool = True
    lists_after_epoch: bool = True


@dataclass
class Leader:
    """The memory of a replica that leads, or thinks so; while it takes over, it has no epoch or no pods."""

    epoch: int | None
    live: dict[str, Entry] | None
    reservations: OpenReservations = field(default_factory=OpenReservations)
    ended: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()


@dataclass
class World:
    rules: Rules = field(default_factory=Rules)
    ledger: Ledger = field(default_factory=lambda: Ledger({CORES: HARD, ON_MODEL: HARD_ON_MODEL}))
    version: int = 0
    clock: float = 0.0
    worked: float = 0.0
    """Seconds in which the API server could store something."""

    coming: dict[str, tuple[Entry, float]] = field(default_factory=dict)
    """Creates that were allowed, and when they end."""

    stored: dict[str, Entry] = field(default_factory=dict)
    being_bound: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Of each pod the last attempt that was sent, and when it ends: one that was sent before can no longer land."""

    bound: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    seen: list[tuple[Ledger, int]] = field(default_factory=list)
    leaders: list[Leader] = field(default_factory=list)
    _uids: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.seen = [(self.ledger, self.version)] * 3

    # --- the API server -----------------------------------------------------------------------------------------------

    def write(self, found: Ledger, version: int) -> bool:
        """Writes only over the version that was read."""
        if self.rules.compares and version != self.version:
            return False
        self.ledger, self.version = found, self.version + 1
        return True

    def works(self, seconds: float) -> None:
        self.clock += seconds
        self.worked += seconds
        self.coming = {uid: (entry, end) for uid, (entry, end) in self.coming.items() if end > self.worked}
        self.being_bound = {uid: (name, end) for uid, (name, end) in self.being_bound.items() if end > self.worked}

    def hangs(self, seconds: float) -> None:
        """A leader hangs, and continues later with its old state."""
        self.clock += seconds
        for leader in self.leaders:
            leader.reservations = leader.reservations.failed()

    def store(self, uid: str) -> None:
        self.stored[uid] = self.coming.pop(uid)[0]

    def end(self, uid: str) -> None:
        del self.stored[uid]
        self.being_bound.pop(uid, None)
        self.bound.discard(uid)
        self.ended.add(uid)

    def live(self) -> dict[str, Entry]:
        """The charges of all stored pods."""
        return {uid: self._with_its_place(uid, entry) for uid, entry in self.stored.items()}

    def _with_its_place(self, uid: str, entry: Entry) -> Entry:
        return entry._replace(charge={**entry.charge, ON_MODEL: entry.charge[CORES]}) if uid in self.bound else entry

    def is_kept(self, reservation: str) -> bool:
        return rules.pod_uid(reservation) in (self.bound if rules.is_bind_reservation(reservation) else self.stored)

    # --- replicas -----------------------------------------------------------------------------------------------------

    def look(self, replica: int) -> None:
        self.seen[replica] = self.ledger, self.version

    def create(self, replica: int, namespace: str, cores: int, *, answer: str = "arrives") -> str:
        """`answer`: "arrives", "lost" to the replica that wrote, or the replica "dies" before it allows the pod."""
        uid = f"u{next(self._uids)}"
        entry = Entry(namespace, uid, {CORES: cores})
        for _ in range(3):
            found, version = self.seen[replica]
            try:
                wanted = self.rules.reserve(found, uid, entry)
            except (Exceeded, Busy):
                if version == self.version:
                    return "refused"
                self.look(replica)
                continue
            if wanted is not found and not self.write(wanted, version):
                self.look(replica)
                continue
            if answer == "lost":
                self.look(replica)
                answer = "arrives"
                continue
            self.seen[replica] = self.ledger, self.version
            if answer == "arrives":
                self.coming[uid] = entry, self.worked + CREATE_S
            return answer
        return "busy"

    def refused_after(self, replica: int) -> None:
        """Another ledger refused the pod: this call releases its reservation."""
        self.look(replica)
        uid = f"u{next(self._uids)}"
        try:
            wanted = self.rules.reserve(self.ledger, uid, Entry("a", uid, {CORES: 1}))
        except (Exceeded, Busy):
            return
        self.write(wanted, self.version)
        self.write(self.rules.release(self.ledger, (uid,)), self.version)
        self.look(replica)

    def tries_to_bind(self, uid: str, *, dies: bool = False) -> None:
        """Reserves for the chosen node and binds; a replica that `dies` sends nothing."""
        if uid in self.bound:
            return
        reservation = rules.bind_reservation(uid, f"{next(self._uids)}")
        entry = Entry(self.stored[uid].namespace, uid, {ON_MODEL: self.stored[uid].charge[CORES]})
        try:
            wanted = self.rules.reserve(self.ledger, reservation, entry)
        except (Exceeded, Busy):
            return
        self.write(wanted, self.version)
        if not dies:
            self.being_bound[uid] = reservation, self.worked + CREATE_S

    def is_bound(self, uid: str) -> None:
        del self.being_bound[uid]
        self.bound.add(uid)

    def was_not_bound(self, uid: str) -> None:
        """The API server refused the bind: its reservation is released."""
        reservation, _ = self.being_bound.pop(uid)
        self.write(self.rules.release(self.ledger, (reservation,)), self.version)

    # --- leaders ------------------------------------------------------------------------------------------------------

    def stands(self) -> None:
        """The first half of a takeover."""
        self.leaders.append(Leader(None, self.live(), bound=frozenset(self.bound)))
        if self.rules.lists_after_epoch:
            self.leaders[-1] = Leader(self._new_epoch(), None)

    def begins(self, leader: int) -> None:
        """The second half of a takeover."""
        mine = self.leaders[leader]
        if mine.live is None:
            mine.live, mine.bound = self.live(), frozenset(self.bound)
        mine.epoch = self._new_epoch() if mine.epoch is None else mine.epoch

    def _new_epoch(self) -> int:
        self.write(self.rules.take_over(self.ledger), self.version)
        return self.ledger.epoch

    def hears(self, leader: int) -> None:
        """The leader's watch reports all changes since its list."""
        mine = self.leaders[leader]
        if mine.live is not None:
            mine.live, mine.ended, mine.bound = self.live(), frozenset(self.ended), frozenset(self.bound)

    def commits(self, leader: int) -> bool:
        """The leader commits what its watch reported last, which may be old."""
        mine = self.leaders[leader]
        if mine.epoch is None or mine.live is None:
            return False
        try:
            strangers = mine.live.keys() - self.ledger.reservations.keys()
            total = sum_of(entry.charge for entry in mine.live.values())
            pods = StoredPods(mine.live, total, mine.bound, strangers, mine.ended)
            wanted = self.rules.commit(self.ledger, mine.epoch, pods)
        except LostLeadership:
            return False
        return self.write(wanted, self.version)

    def reads(self, leader: int) -> None:
        """The leader reads all pods by a quorum, and releases expired reservations."""
        mine = self.leaders[leader]
        opened = self.ledger.reservations.keys()
        mine.reservations = self.rules.read(mine.reservations, self.clock, opened, {*filter(self.is_kept, opened)})
        if self.ledger.epoch == mine.epoch and (
            void := self.rules.void(mine.reservations) & self.ledger.reservations.keys()
        ):
            self.write(rules.without(self.ledger, void), self.version)

    # --- is all well? -------------------------------------------------------------------------------------------------

    def wrong(self) -> list[str]:
        """Returns the violations, by independent sums."""
        held = sum(entry.charge[CORES] for entry in self.stored.values())
        coming = sum(entry.charge[CORES] for entry, _ in self.coming.values())
        placed = sum(self.stored[uid].charge[CORES] for uid in {*self.bound, *self.being_bound})
        totals = (
            (self._reserved(CORES), HARD, "are reserved"),
            (held + coming, HARD, "are stored or may be"),
            (self._reserved(ON_MODEL), HARD_ON_MODEL, "are reserved on the model"),
            (placed, HARD_ON_MODEL, "are bound or may be"),
        )
        return [f"{found} of {hard} {what}" for found, hard, what in totals if found > hard]

    def _reserved(self, key: str) -> int:
        return self.ledger.committed.get(key, 0) + sum(
            entry.charge.get(key, 0) for entry in self.ledger.reservations.values()
        )

    def settle(self) -> None:
        """No more pods are created, and the leader finishes its work."""
        self.stands()
        last = len(self.leaders) - 1
        self.begins(last)
        for _ in range(40):
            self.works(5.0)
            self.reads(last)
            self.hears(last)
            self.commits(last)

    def leaked(self) -> Amounts:
        """Amounts that are counted, although no pod has them."""
        held = Counter[str]()
        for entry in self.live().values():
            held.update(entry.charge)
        return +Counter({key: amount - held[key] for key, amount in rules.used(self.ledger).items()})
