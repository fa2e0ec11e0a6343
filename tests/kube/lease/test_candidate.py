"""The rules of leadership, in simulated time: candidates that see an API server late, twice or not at all."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from kube.lease.candidate import NEW_LEASE_HOLDER, Candidate, Lease, LeaseAction, LeaseTimings

RULES = LeaseTimings()
Fate = Literal["well", "lost", "unanswered", "late", "resign"]


class Round(NamedTuple):
    """One round of a candidate: how long it sleeps, how long a call takes to the server and back, and what befalls it.

    A write that is late lands after its sender has given it up, `out` seconds later.
    """

    pause: float
    out: float = 0.0
    back: float = 0.0
    fate: Fate = "well"


@dataclass
class World:
    """The Lease, true time, and what is still to happen."""

    lease: Lease | None = None
    now: float = 0.0
    written: int = 0
    agenda: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)

    def later(self, delay: float, do: Callable[[], None]) -> None:
        self.written += 1  # also tells apart what happens at the same time
        heapq.heappush(self.agenda, (self.now + delay, self.written, do))

    def write(self, base: Lease | None, holder: str) -> Lease | None:
        """Compare-and-set."""
        if self.lease != base:
            return None
        self.written += 1
        self.lease = Lease(holder, str(self.written))
        return self.lease


class FakeCandidate:
    """Lives through its rounds as Leadership does, beside a takeover that takes no time."""

    def __init__(self, world: World, name: str, offset: float, rounds: list[Round]) -> None:
        self._world = world
        self._offset = offset
        self._candidacy = Candidate(name, RULES)
        self._resigned = False
        self._life = self._live(rounds)
        world.later(0, self._go_on)

    def may_decide(self) -> bool:
        return not self._resigned and self._candidacy.may_decide(self._clock())

    def _clock(self) -> float:
        return self._world.now + self._offset

    def _go_on(self) -> None:
        delay = next(self._life, None)
        if delay is not None:
            self._world.later(delay, self._go_on)

    def _live(self, rounds: list[Round]) -> Generator[float, None, None]:
        for this in rounds:
            yield this.pause
            if self._candidacy.must_read:
                yield this.out
                seen = self._world.lease
                yield this.back
                if this.fate == "lost":
                    continue
                self._candidacy = self._candidacy.with_lease(seen, self._clock())
            step = self._candidacy.decide(self._clock())
            if step is not LeaseAction.WAIT:
                yield from self._write(step, this)

    def _write(self, step: LeaseAction, this: Round) -> Generator[float, None, None]:
        base, sent = self._candidacy.lease, self._clock()
        self._resigned = step is LeaseAction.RENEW and this.fate == "resign"
        holder = NEW_LEASE_HOLDER if step is LeaseAction.CREATE else "" if self._resigned else self._candidacy.identity
        self._candidacy = self._candidacy.with_pending_write()
        if this.fate == "late":
            self._world.later(this.out, lambda: void(self._world.write(base, holder)))
            return
        yield this.out
        written = None if this.fate == "lost" else self._world.write(base, holder)
        yield this.back
        if this.fate in ("lost", "unanswered"):
            return
        found = self._candidacy
        self._candidacy = found.with_conflict() if written is None else found.with_written(written, sent, self._clock())


def void(_: object) -> None:
    """No candidate hears of what landed late."""


def leaders(world: World, candidates: list[FakeCandidate]) -> Generator[int, None, None]:
    """How many may decide after each event: no candidate begins to decide at another moment."""
    while world.agenda:
        world.now, _, do = heapq.heappop(world.agenda)
        do()
        yield sum(candidate.may_decide() for candidate in candidates)


DELAYS = st.sampled_from((0.0, 0.01, 1.0, 2.5, 5.0, 9.99, 10.0, 12.5, 14.99, 15.0, 15.01, 20.0, 40.0))
SHORT = st.sampled_from((0.0, 0.01, 0.5, 3.0))
FATES: st.SearchStrategy[Fate] = st.sampled_from(("well", "well", "well", "lost", "unanswered", "late", "resign"))
ROUNDS = st.builds(Round, DELAYS, DELAYS | SHORT, DELAYS | SHORT, FATES) | st.builds(Round, st.just(2.5), SHORT, SHORT)
LIVES = st.lists(st.tuples(st.floats(-1e6, 1e6), st.lists(ROUNDS, max_size=25)), min_size=2, max_size=4)
HOLDERS = st.sampled_from((None, "", NEW_LEASE_HOLDER, "one who died"))


@given(HOLDERS, LIVES)
@example("", [(0.0, [Round(0), Round(2.5, back=14.9)]), (5.0, [Round(2.6), Round(15.1)])])  # a late answer
def test_two_candidates_never_decide_at_once(holder: str | None, lives: list[tuple[float, list[Round]]]) -> None:
    world = World(None if holder is None else Lease(holder, "before"))
    candidates = [FakeCandidate(world, f"c{number}", *life) for number, life in enumerate(lives)]
    assert all(deciding <= 1 for deciding in leaders(world, candidates))


def led(holder: str | None, *lives: list[Round]) -> list[float]:
    """Returns the times at which a replica may decide."""
    world = World(None if holder is None else Lease(holder, "before"))
    candidates = [FakeCandidate(world, f"c{number}", 1000.0 * number, life) for number, life in enumerate(lives)]
    return [world.now for deciding in leaders(world, candidates) if deciding]


def test_a_released_lease_is_taken_at_once() -> None:
    assert led("", [Round(0)], [Round(1)])[0] == 0


def test_an_expired_lease_is_taken() -> None:
    assert led("one who died", [Round(2.5)] * 10)[0] == 2.5 + 15


def test_the_creator_of_a_lease_waits_like_every_candidate() -> None:
    assert led(None, [Round(2.5)] * 10)[0] == 2.5 + 15


def test_a_leader_that_renews_stays_the_only_one() -> None:
    times = led("", [Round(2.5)] * 40, [Round(2.5)] * 40)
    assert times[-1] == 100


def test_a_leader_whose_renewals_get_lost_stops_deciding() -> None:
    times = led("", [Round(0), *[Round(2.5, fate="lost")] * 6])
    assert times[-1] == 7.5


def test_a_lost_answer_does_not_end_leadership() -> None:
    times = led("", [Round(0), Round(2.5, fate="unanswered"), *[Round(2.5)] * 6])
    assert times[-1] == 17.5


def test_a_candidate_after_a_conflict_decides_nothing() -> None:
    held = Candidate("me", RULES).with_lease(Lease("me", "1"), 0).with_written(Lease("me", "2"), 0, 0)
    assert held.may_decide(1)
    assert not held.with_conflict().may_decide(1)
    assert held.with_conflict().must_read
    assert not held.with_conflict().with_lease(Lease("me", "3"), 1).may_decide(1)
