"""Laws of reservations in several ledgers, over any interleaving of calls, replicas, lost answers and the leader."""

from __future__ import annotations

from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from halfcard.quota.ledger import pod_uid
from tests.kube.reservation_world import Create, World
from tests.virtual_time import run_in_virtual_time

NAMES: Final = ("gpuquota.t.a", "gpuquota.t.b", "gpuquota.t.c")
EXPIRED_S: Final = 90.0

LEDGERS: Final = st.sets(st.sampled_from(NAMES), min_size=1).map(lambda found: tuple(sorted(found)))
HARD: Final = st.fixed_dictionaries({name: st.integers(1, 6) for name in NAMES})


def creates(fates: st.SearchStrategy[str]) -> st.SearchStrategy[list[Create]]:
    one = st.builds(Create, st.floats(0, 2), st.integers(0, 1), LEDGERS, st.integers(1, 2), fates)
    return st.lists(one, min_size=1, max_size=16)


ANY_FATE: Final = st.sampled_from(
    ["stored", "stored", "stored", "refused afterwards", "caller hangs up", "replica dies"]
)


@settings(max_examples=40, deadline=None)
@given(HARD, creates(ANY_FATE), st.integers(0, 2**16), st.sampled_from([0.03, 0.5]), st.sampled_from([0.0, 0.02, 0.2]))
def test_nothing_is_promised_twice_and_nothing_stays_promised(
    hard: dict[str, int], pods: list[Create], seed: int, slowest_s: float, loses: float
) -> None:
    world = World(hard, seed, slowest_s, loses)
    run_in_virtual_time(world.run(pods, EXPIRED_S))
    assert world.wrong == []
    assert {name: ledger.reservations for name in NAMES if (ledger := world.server.ledger(name)).reservations} == {}
    for name in NAMES:
        committed = world.server.ledger(name).committed.get("shares", 0)
        assert committed == world.charged(name, world.stored)


@settings(max_examples=40, deadline=None)
@given(HARD, creates(st.sampled_from(["stored", "stored", "caller hangs up"])), st.integers(0, 2**16))
def test_every_pod_that_fits_is_stored_at_the_second_try_and_calls_that_are_over_promise_nothing(
    hard: dict[str, int], pods: list[Create], seed: int
) -> None:
    world = World(hard, seed)
    run_in_virtual_time(world.run(pods, settle_s=0.0))
    assert world.wrong == []
    assert "try again" not in world.ends
    left = {pod_uid(each) for name in NAMES for each in world.server.ledger(name).reservations}
    assert left == set()
