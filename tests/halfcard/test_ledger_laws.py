"""The ledger under all events in any order, and a check that the laws notice each broken rule."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from halfcard.quota import ledger as rules
from halfcard.quota.ledger import Entry, Ledger, StoredPods
from halfcard.quota.reservation_expiry import OpenReservations

from .ledger_world import Rules, World
from .planting import assert_is_found

REPLICAS: Final = st.integers(0, 2)
ANY: Final = st.integers(0, 10**6)


class Life(RuleBasedStateMachine):
    obeyed = Rules()

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.obeyed)
        self.world.stands()
        self.world.begins(0)
        self.world.commits(0)

    @rule(replica=REPLICAS, namespace=st.sampled_from("abc"), cores=st.integers(1, 6))
    def creates(self, replica: int, namespace: str, cores: int) -> None:
        self.world.create(replica, namespace, cores)

    @rule(replica=REPLICAS, answer=st.sampled_from(["lost", "dies"]))
    def creates_and_something_breaks(self, replica: int, answer: str) -> None:
        self.world.create(replica, "a", 4, answer=answer)

    @rule(replica=REPLICAS)
    def is_refused_by_another_ledger(self, replica: int) -> None:
        self.world.refused_after(replica)

    @rule(replica=REPLICAS)
    def looks(self, replica: int) -> None:
        self.world.look(replica)

    @precondition(lambda self: self.world.coming)
    @rule(which=ANY)
    def is_stored(self, which: int) -> None:
        self.world.store([*self.world.coming][which % len(self.world.coming)])

    @precondition(lambda self: self.world.stored)
    @rule(which=ANY)
    def ends(self, which: int) -> None:
        self.world.end([*self.world.stored][which % len(self.world.stored)])

    @precondition(lambda self: self.world.stored)
    @rule(which=ANY, dies=st.booleans())
    def somebody_tries_to_bind(self, which: int, dies: bool) -> None:  # noqa: FBT001
        self.world.tries_to_bind([*self.world.stored][which % len(self.world.stored)], dies=dies)

    @precondition(lambda self: self.world.being_bound)
    @rule(which=ANY, lands=st.booleans())
    def a_bind_ends(self, which: int, lands: bool) -> None:  # noqa: FBT001
        uid = [*self.world.being_bound][which % len(self.world.being_bound)]
        if lands:
            self.world.is_bound(uid)
        else:
            self.world.was_not_bound(uid)

    @rule(seconds=st.sampled_from([1.0, 4.0, 20.0, 60.0]))
    def the_api_server_works(self, seconds: float) -> None:
        self.world.works(seconds)

    @rule(seconds=st.sampled_from([20.0, 70.0, 3600.0]))
    def the_api_server_hangs(self, seconds: float) -> None:
        self.world.hangs(seconds)

    @rule()
    def somebody_stands(self) -> None:
        self.world.stands()

    @rule(which=ANY)
    def somebody_begins_to_lead(self, which: int) -> None:
        self.world.begins(which % len(self.world.leaders))

    @rule(which=ANY, hears=st.booleans())
    def a_leader_commits(self, which: int, hears: bool) -> None:  # noqa: FBT001
        leader = which % len(self.world.leaders)
        if hears:
            self.world.hears(leader)
        self.world.commits(leader)

    @rule(which=ANY, times=st.integers(1, 16), apart=st.sampled_from([1.0, 4.0]))
    def a_leader_reads(self, which: int, times: int, apart: float) -> None:
        for _ in range(times):
            self.world.works(apart)
            self.world.reads(which % len(self.world.leaders))

    @invariant()
    def nothing_is_reserved_twice(self) -> None:
        assert self.world.wrong() == []

    def teardown(self) -> None:
        self.world.settle()
        assert self.world.wrong() == []
        assert self.world.leaked() == {}


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


# --- broken rules -----------------------------------------------------------------------------------------------------


def blind_to_reservations(ledger: Ledger, uid: str, entry: Entry) -> Ledger:
    return rules.reserve(ledger._replace(reservations={}), uid, entry)._replace(
        reservations={**ledger.reservations, uid: entry}
    )


def adding(ledger: Ledger, epoch: int, pods: StoredPods) -> Ledger:
    found = rules.commit(ledger, epoch, pods)
    return found._replace(committed=rules.sum_of([ledger.committed, found.committed]))


def in_any_epoch(ledger: Ledger, _epoch: int, pods: StoredPods) -> Ledger:
    return rules.commit(ledger, ledger.epoch, pods)


def forgetting(ledger: Ledger, epoch: int, pods: StoredPods) -> Ledger:
    return rules.commit(ledger, epoch, pods)._replace(reservations={})


def keeping(ledger: Ledger, epoch: int, pods: StoredPods) -> Ledger:
    return rules.commit(ledger, epoch, pods)._replace(reservations=ledger.reservations)


def taking_waiting_pods_for_bound(ledger: Ledger, epoch: int, pods: StoredPods) -> Ledger:
    return rules.commit(ledger, epoch, pods._replace(bound=pods.live.keys()))


def keeping_the_reservation_of_a_bind(ledger: Ledger, epoch: int, pods: StoredPods) -> Ledger:
    return rules.commit(ledger, epoch, pods._replace(bound=()))


def by_the_clock(
    reservations: OpenReservations, began: float, uids: Collection[str], stored: Collection[str]
) -> OpenReservations:
    return OpenReservations.read(reservations._replace(now=began, read_at=None), began, uids, stored)


def young(reservations: OpenReservations) -> frozenset[str]:
    return frozenset(uid for uid, first in reservations.seen_since.items() if reservations.now - first >= 20)


BROKEN: Final = {
    "a reservation is not counted": Rules(reserve=blind_to_reservations),
    "a ledger is written over any version": Rules(compares=False),
    "a commit adds to what was committed": Rules(commit=adding),
    "a commit that drops the reservations of pods that are not stored yet": Rules(commit=forgetting),
    "a commit that keeps the reservations of stored pods": Rules(commit=keeping),
    "a commit that counts bound pods twice": Rules(commit=keeping_the_reservation_of_a_bind),
    "a reservation is void when it may still be kept": Rules(void=young),
    "a reservation is void at once": Rules(void=lambda reservations: frozenset(reservations.seen_since)),
    "a reservation is never void": Rules(void=lambda _: frozenset()),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_each_rule_is_needed(broken: Rules) -> None:
    class Broken(Life):
        obeyed = broken

    assert_is_found(Broken)


def a_pod_is_committed_while_somebody_stands(world: World) -> None:
    world.create(0, "a", 6)
    world.stands()
    world.store("u0")
    world.hears(0)
    world.commits(0)
    world.begins(1)
    world.commits(1)


def one_that_led_commits_beside_one_that_leads(world: World) -> None:
    world.create(0, "a", 6)
    world.stands()
    world.begins(1)
    world.store("u0")
    world.hears(0)
    world.commits(0)
    world.commits(1)


def the_api_server_hangs_before_it_stores(world: World) -> None:
    world.create(0, "a", 6)
    for hangs_s in (0.0, 70.0, 20.0):
        world.hangs(hangs_s)
        world.reads(0)


def a_pod_is_committed_while_it_is_about_to_be_bound(world: World) -> None:
    for uid in ("u0", "u1"):
        world.create(0, "a", 4)
        world.store(uid)
    world.tries_to_bind("u0")
    world.hears(0)
    world.commits(0)
    world.tries_to_bind("u1")


@pytest.mark.parametrize(
    ("history", "broken"),
    [
        (a_pod_is_committed_while_somebody_stands, Rules(lists_after_epoch=False)),
        (one_that_led_commits_beside_one_that_leads, Rules(commit=in_any_epoch)),
        (one_that_led_commits_beside_one_that_leads, Rules(take_over=lambda ledger: ledger)),
        (the_api_server_hangs_before_it_stores, Rules(read=by_the_clock)),
    ],
)
def test_histories_that_chance_finds_late(history: Callable[[World], None], broken: Rules) -> None:
    assert after(history, Rules()) == []
    assert after(history, broken) == ["12 of 10 are stored or may be"]


def test_a_bind_has_a_reservation_until_it_is_done() -> None:
    history = a_pod_is_committed_while_it_is_about_to_be_bound
    assert after(history, Rules()) == []
    assert after(history, Rules(commit=taking_waiting_pods_for_bound)) == ["8 of 6 are bound or may be"]


def after(history: Callable[[World], None], obeyed: Rules) -> list[str]:
    """The violations after another pod requests as much."""
    world = World(obeyed)
    world.stands()
    world.begins(0)
    world.commits(0)
    history(world)
    world.look(0)
    world.create(0, "b", 6)
    return world.wrong()
