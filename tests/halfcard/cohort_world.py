"""Three ledgers of one cohort: replicas reserve in them, leaders lend between them, writes arrive late.

A leader does here what quota/loans.py does, one write at a time, so that anything may come between two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Final

from halfcard.quota import ledger as rules
from halfcard.quota import lending, queueing
from halfcard.quota.ledger import Amounts, Busy, Entry, Exceeded, Ledger
from halfcard.quota.lending import Loan, Terms
from halfcard.quota.queueing import WaitingPod
from halfcard.quota.turns import Turn

CORES: Final = "cores"
HARD: Final = {"a": 10, "b": 6, "c": 3}
TERMS: Final = {
    "a": Terms("team", most_borrowed={}, most_lent={CORES: 7}),
    "b": Terms("team", most_borrowed={CORES: 8}, most_lent={}),
    "c": Terms("team", most_borrowed={}, most_lent={}),
}

Change = Callable[[Ledger], Ledger]


@dataclass(frozen=True)
class Rules:
    """The rules of lending; a test breaks one at a time."""

    lend: Callable[[Ledger, Loan], Ledger] = lending.lend
    borrow: Callable[[Ledger, Loan], Ledger] = lending.borrow
    give_back: Callable[[Ledger, Loan], Ledger] = lending.give_back
    owed: Callable[[str, Mapping[str, Ledger], Mapping[str, Amounts], Collection[str]], Mapping[str, Amounts]] = (
        lending.owed
    )
    lends_first: bool = True
    takes_over_anew: bool = True


@dataclass
class World:
    """`written` is what the API server stores, each with its version; `late` are writes that may still arrive."""

    rules: Rules = field(default_factory=Rules)
    written: dict[str, tuple[Ledger, int]] = field(default_factory=dict)
    late: list[tuple[str, Ledger, int]] = field(default_factory=list)
    seen: dict[str, tuple[Ledger, int]] = field(default_factory=dict)
    """The leader's view; a ledger that it has to take over first is missing."""

    steps: list[Callable[[], object]] = field(default_factory=list)
    """That he has planned and not done yet."""

    waiting: list[tuple[str, str, int]] = field(default_factory=list)
    _uids: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.written = {name: (Ledger({CORES: hard}, is_ready=True), 0) for name, hard in HARD.items()}
        self.takes_over()

    # --- the API server -----------------------------------------------------------------------------------------------

    def write(self, name: str, found: Ledger, over: int) -> bool:
        if self.written[name][1] != over:
            return False
        self.written[name] = found, over + 1
        return True

    def lands(self, which: int) -> None:
        self.write(*self.late.pop(which))

    # --- replicas -----------------------------------------------------------------------------------------------------

    def reserve(self, name: str, cores: int) -> None:
        ledger, version = self.written[name]
        uid = f"u{next(self._uids)}"
        try:
            self.write(name, rules.reserve(ledger, uid, Entry("team", uid, {CORES: cores})), version)
        except (Exceeded, Busy):
            self.waiting.append((name, uid, cores))

    def end(self, name: str, which: int) -> None:
        ledger, version = self.written[name]
        uids = [*ledger.reservations]
        if uids:
            self.write(name, rules.without(ledger, {uids[which % len(uids)]}), version)

    # --- who leads ----------------------------------------------------------------------------------------------------

    def takes_over(self) -> None:
        """A new leader takes over, without the plan of the earlier one."""
        self.steps.clear()
        self.seen.clear()
        for name in HARD:
            self._takes_over(name)

    def _takes_over(self, name: str) -> None:
        ledger, version = self.written[name]
        self.write(name, rules.take_over(ledger), version)
        self.seen[name] = self.written[name]

    def takes_over_anew(self) -> None:
        """The leader takes over the ledgers again in which a write had no answer."""
        for name in HARD.keys() - self.seen.keys():
            self._takes_over(name)

    def looks(self) -> None:
        self.seen = {name: self.written[name] for name in self.seen}

    def plans(self) -> None:
        """Plans loans, returns and openings; the lender writes first."""
        waiting = [
            WaitingPod(uid, "team", uid, 0, Turn(f"{int(uid[1:]):06}"), {name: Entry("team", uid, {CORES: cores})})
            for name, uid, cores in self.waiting
        ]
        found = queueing.queue(waiting, self._ledgers(), TERMS)
        settle = [partial(self._settles, name) for name in HARD]
        self.steps += [*settle, *[partial(self._gives_back, loan) for loan in found.unused], *settle]
        self.steps += [partial(self._lends, loan) for loan in found.loans]
        self.steps += [partial(self._opens, each) for each in found.admissible]

    def does(self, answer: str = "arrives") -> None:
        """Runs the next step of the plan; its write "arrives", is "lost", or arrives `late`."""
        self._answer = answer
        if self.steps:
            self.steps.pop(0)()

    def _change(self, name: str, change: Change) -> bool:
        answer, self._answer = self._answer, "arrives"
        if name not in self.seen:
            return False
        while True:
            ledger, version = self.seen[name]
            try:
                wanted = change(ledger)
            except Exceeded:
                return False
            if wanted == ledger:
                return True
            if answer != "arrives":
                return self._is_unsure(name, wanted, version, lands=answer == "late")
            if self.write(name, wanted, version):
                self.seen[name] = self.written[name]
                return True
            self.seen[name] = self.written[name]

    def _is_unsure(self, name: str, wanted: Ledger, version: int, *, lands: bool) -> bool:
        if lands:
            self.late.append((name, wanted, version))
        if self.rules.takes_over_anew:
            del self.seen[name]
        return False

    def _ledgers(self) -> dict[str, Ledger]:
        return {name: ledger for name, (ledger, _) in self.seen.items()}

    def _settles(self, name: str) -> None:
        unseen = HARD.keys() - self.seen.keys()
        known = self._ledgers()
        self._change(name, lambda ledger: ledger._replace(lent=self.rules.owed(name, known, ledger.lent, unseen)))

    def _gives_back(self, loan: Loan) -> None:
        self._change(loan.borrower, lambda ledger: self.rules.give_back(ledger, loan))

    def _lends(self, loan: Loan) -> None:
        first = partial(self._change, loan.lender, lambda ledger: self.rules.lend(ledger, loan))
        second = partial(self._change, loan.borrower, lambda ledger: self.rules.borrow(ledger, loan))
        if not self.rules.lends_first:
            first, second = second, first
        if first():
            self.steps.insert(0, second)

    def _opens(self, waiting: WaitingPod) -> None:
        ((name, entry),) = waiting.entries.items()
        self._answer = "arrives"
        if (name, waiting.uid, entry.charge[CORES]) not in self.waiting:
            return
        if self._change(name, lambda ledger: rules.reserve(ledger, waiting.uid, entry)):
            self.waiting.remove((name, waiting.uid, entry.charge[CORES]))

    # --- is all well? -------------------------------------------------------------------------------------------------

    def wrong(self) -> list[str]:
        """Returns the violations, by independent sums."""
        ledgers = {name: ledger for name, (ledger, _) in self.written.items()}
        used = sum(entry.charge[CORES] for ledger in ledgers.values() for entry in ledger.reservations.values())
        found = [f"{used} of {sum(HARD.values())} are reserved"] if used > sum(HARD.values()) else []
        for name, ledger in ledgers.items():
            for lender, amounts in ledger.borrowed.items():
                lent = ledgers[lender].lent.get(name, {}).get(CORES, 0)
                if amounts[CORES] > lent:
                    found.append(f"{name} has {amounts[CORES]} from {lender}, who lent {lent}")
        return found

    def rests(self) -> None:
        """All pods end, and the leader finishes its work."""
        self.waiting.clear()
        self.late.clear()
        for name in HARD:
            while self.written[name][0].reservations:
                self.end(name, 0)
        for _ in range(3):
            self.takes_over()
            self.settles_down()

    def settles_down(self) -> None:
        """The leader runs all steps that the current state needs."""
        self.takes_over_anew()
        self.looks()
        self.plans()
        while self.steps:
            self.does()

    def loans(self) -> list[Mapping[str, Amounts]]:
        return [each for ledger, _ in self.written.values() for each in (ledger.lent, ledger.borrowed) if each]
