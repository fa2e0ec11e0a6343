"""Caller tokens are replaced without a moment in which an API server uses one that a replica does not accept."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final, TypeVar

import pytest

from certs.tokens.token_plan import HeldTokens, TokenRules, TokenStep, plan_tokens, registered_tokens, token_to_register
from halfcard.caller_tokens import WITHOUT, Tokens, path_with

NOW: Final = datetime(2026, 11, 24, 12, tzinfo=UTC)
RULES: Final = TokenRules(timedelta(minutes=60), timedelta(minutes=5), timedelta(minutes=5))
OLD, NEW, LOST = "a" * 64, "b" * 64, "c" * 64
MINUTE: Final = timedelta(minutes=1)


def held(tokens: Tokens, age_m: float, registered: set[str], since_m: float | None = None) -> HeldTokens:
    since = None if since_m is None else NOW - since_m * MINUTE
    return HeldTokens(tokens, NOW - age_m * MINUTE, since, frozenset(registered))


def step(held: HeldTokens) -> tuple[Tokens, datetime | None] | None:
    found = plan_tokens(held, RULES, now=NOW, fresh=NEW)
    return None if found is None else found[:2]


STEPS: Final[dict[str, tuple[HeldTokens, tuple[Tokens, datetime | None] | None]]] = {
    "the first one, before anything is registered": (held((), 0, set()), ((NEW,), None)),
    "the first one after an upgrade: calls without one go on": (held((), 0, {WITHOUT}), ((NEW, WITHOUT), None)),
    "the Secret was deleted: the one in use is kept": (held((), 0, {OLD}), ((OLD,), None)),
    "deleted during a rotation": (held((), 0, {OLD, WITHOUT}), ((OLD, WITHOUT), None)),
    "a restored Secret does not know the one in use": (held((OLD,), 90, {LOST}), ((LOST, OLD), None)),
    "a registration without one, by hand, opens nothing": (held((OLD,), 9, {WITHOUT}), None),
    "in its life": (held((OLD,), 59, {OLD}), None),
    "after its life": (held((OLD,), 60, {OLD}), ((NEW, OLD), None)),
    "the new one is not registered yet": (held((NEW, OLD), 4, {OLD}), None),
    "half of the configurations have it": (held((NEW, OLD), 6, {NEW, OLD}), None),
    "all have it": (held((NEW, OLD), 6, {NEW}), ((NEW, OLD), NOW)),
    "all have had it for a while": (held((NEW, OLD), 6, {NEW}, since_m=4), None),
    "no API server can use the old one": (held((NEW, OLD), 16, {NEW}, since_m=5), ((NEW,), None)),
    "the old one was registered again": (held((NEW, OLD), 16, {OLD}, since_m=9), ((NEW, OLD), None)),
    "no second rotation before the first has ended": (held((NEW, OLD), 999, {OLD}), None),
}


@pytest.mark.parametrize("state", STEPS)
def test_the_next_step(state: str) -> None:
    before, after = STEPS[state]
    assert step(before) == after


REGISTERED: Final[dict[str, tuple[HeldTokens, bool, str]]] = {
    "at first the newest": (held((NEW,), 0, set()), True, NEW),
    "the old one until all replicas know the new one": (held((NEW, OLD), 4.9, {OLD}), True, OLD),
    "then the new one": (held((NEW, OLD), 5, {OLD}), True, NEW),
    "a half-done registration is completed": (held((NEW, OLD), 6, {NEW, OLD}), True, NEW),
    "none, until replicas of the earlier version are gone": (held((NEW, WITHOUT), 99, {WITHOUT}), False, WITHOUT),
    "an upgrade ends": (held((NEW, WITHOUT), 5, {WITHOUT}), True, NEW),
    "what no replica accepts is replaced at once": (held((NEW,), 0, {WITHOUT}), False, NEW),
}


@pytest.mark.parametrize("state", REGISTERED)
def test_what_is_registered(state: str) -> None:
    before, is_replaced, wanted = REGISTERED[state]
    assert token_to_register(before, RULES, now=NOW, is_replaced=is_replaced) == wanted


def test_tokens_are_read_from_all_paths_of_both_configurations() -> None:
    def configuration(*paths: str) -> dict[str, object]:
        return {"webhooks": [{"clientConfig": {"service": {"path": path}}} for path in paths]}

    found = [
        configuration(path_with(OLD, "/a/b"), "/c/d"),
        None,
        {"webhooks": [{"clientConfig": {"url": "https://x"}}]},
    ]
    assert registered_tokens(found) == {OLD, WITHOUT}
    assert registered_tokens([{}, None]) == frozenset()


# --- the law ---------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """An installation whose replicas read the Secret up to four minutes late, API servers the registration one."""

    random: Random
    tokens: Tokens
    used: str
    now: datetime = NOW
    made: datetime = NOW - timedelta(days=9)
    since: datetime | None = None
    reads: list[tuple[datetime, Tokens]] = field(default_factory=list)
    registrations: list[tuple[datetime, str]] = field(default_factory=list)
    made_so_far: int = 0

    def __post_init__(self) -> None:
        self.reads.append((self.now - 10 * MINUTE, self.tokens))
        self.registrations.append((self.now - 10 * MINUTE, self.used))

    def controller_runs(self) -> None:
        """One controller may be killed after any write."""
        held = HeldTokens(self.tokens, self.made, self.since, frozenset({self.used}))
        self.made_so_far += 1
        if found := plan_tokens(held, RULES, now=self.now, fresh=f"{self.made_so_far:064x}"):
            self._store(found)
            return
        wanted = token_to_register(held, RULES, now=self.now, is_replaced=True)
        if wanted != self.used:
            self.used = wanted
            self.registrations.append((self.now, wanted))

    def _store(self, found: TokenStep) -> None:
        self.tokens, self.since = found.tokens, found.since
        self.made = self.now if found.is_new else self.made
        self.reads.append((self.now, found.tokens))

    def secret_is_deleted(self) -> None:
        """With the Secret, knowledge of an older token is lost; an API server that still used that one would fail."""
        if self.now > self.registrations[-1][0] + MINUTE:
            self.tokens = ()

    def check(self) -> None:
        for server in range(3):
            used = latest(self.registrations, self.now - server * MINUTE / 2)
            for replica in range(5):
                accepted = latest(self.reads, self.now - replica * MINUTE)
                assert used in accepted, (self.now, server, replica)


T = TypeVar("T")


def latest(history: list[tuple[datetime, T]], until: datetime) -> T:
    return [value for at, value in history if at <= until][-1]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("start", [OLD, WITHOUT])
def test_no_call_fails_whatever_the_order_of_steps_deletions_and_delays(start: str, seed: int) -> None:
    random = Random(seed)
    first = (OLD,) if start else (NEW, WITHOUT)
    world = World(random, first, start)
    for _ in range(600):
        world.now += random.choice((1, 30, 60, 120)) * timedelta(seconds=1)
        if random.random() < 0.7:
            world.controller_runs()
        if random.random() < 0.01:
            world.secret_is_deleted()
        world.check()
    assert world.used not in (OLD, WITHOUT)
    assert world.made_so_far > 5
