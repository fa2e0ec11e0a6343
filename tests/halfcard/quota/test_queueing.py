"""The laws of the queue: each pod waits only for what it lacks, and in turn; single cases are in `queue.story`."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from halfcard.quota.ledger import Entry, Ledger, reserve, used
from halfcard.quota.queueing import BlockedPod, Queue, WaitingPod, in_order, queue
from halfcard.quota.turns import Turn

OWN, OTHER, SHARED = "own", "other", "shared"
ROOM: Final = {
    OWN: Ledger({"cores": 100, "cards": 1}, is_ready=True),
    OTHER: Ledger({"cores": 50}, is_ready=True),
    SHARED: Ledger({"cores": 120, "cards": 2}, is_ready=True),
}
OF_TEAM: Final = {"a": (OWN, SHARED), "b": (OTHER, SHARED), "c": (SHARED,)}


def waiting(name: str, team: str = "a", *, priority: int = 0, at: str = "10", **charge: int) -> WaitingPod:
    entries = {ledger: Entry(team, name, charge) for ledger in OF_TEAM[team]}
    return WaitingPod(f"uid-{name}", team, name, priority, Turn(f"2026-01-01T00:00:{at}Z"), entries)


PODS: Final = st.lists(
    st.builds(
        waiting,
        st.text("abcdefgh", min_size=3, max_size=3),
        st.sampled_from(sorted(OF_TEAM)),
        priority=st.integers(0, 2),
        at=st.integers(10, 59).map(str),
        cores=st.integers(0, 60),
        cards=st.integers(0, 2),
    ),
    unique_by=lambda each: each.pod,
    max_size=8,
)


def amounts(pod: WaitingPod) -> set[tuple[str, str]]:
    """Returns what the pod needs, by ledger and key."""
    return {(name, key) for name, entry in pod.entries.items() for key, amount in entry.charge.items() if amount}


def lacking(blocked: BlockedPod) -> set[tuple[str, str]]:
    return {(blocked.ledger, key) for key in blocked.keys}


def after(found: Queue, room: dict[str, Ledger]) -> dict[str, Ledger]:
    """Reserves for what is admitted."""
    for pod in found.admissible:
        room = room | {name: reserve(room[name], pod.uid, entry) for name, entry in pod.entries.items()}
    return room


@given(PODS)
def test_admitted_pods_fit_and_every_other_pod_waits_for_something(pods: list[WaitingPod]) -> None:
    found = queue(pods, ROOM)
    for ledger in after(found, ROOM).values():
        assert all(used(ledger)[key] <= hard for key, hard in ledger.hard.items())
    assert in_order(pods) == in_order([*found.admissible, *[each.waiting for each in found.blocked]])
    assert all(lacking(each) and lacking(each) <= amounts(each.waiting) for each in found.blocked)


@given(PODS)
def test_no_pod_passes_another_that_waits_for_the_same_amount(pods: list[WaitingPod]) -> None:
    order, admitted = in_order(pods), {*[each.uid for each in queue(pods, ROOM).admissible]}
    for at in range(len(order)):
        found = queue(order[: at + 1], ROOM)
        assert {each.uid for each in found.admissible} == {each.uid for each in order[: at + 1]} & admitted
        waits_for = {wanted for each in found.blocked if each.waiting is order[at] for wanted in lacking(each)}
        assert not any(waits_for & amounts(pod) for pod in order[at + 1 :] if pod.uid in admitted)


@given(PODS)
def test_a_pod_waits_for_an_amount_that_it_lacks_or_behind_the_last_pod_that_waits_for_it(
    pods: list[WaitingPod],
) -> None:
    found = queue(pods, ROOM)
    full = after(found, ROOM)
    last: dict[tuple[str, str], WaitingPod] = {}
    for each in found.blocked:
        for short in each.shortages:
            assert used(full[each.ledger])[short.key] + short.wanted > short.hard
            assert (each.ledger, short.key) not in last
        assert all(pod is last[each.ledger, key] for key, pod in each.behind.items())
        last |= dict.fromkeys(lacking(each), each.waiting)


@given(PODS, st.integers(101, 200))
def test_a_pod_that_lacks_room_in_its_own_budget_keeps_no_pod_of_another_namespace_waiting(
    pods: list[WaitingPod], cores: int
) -> None:
    others = [pod for pod in pods if pod.namespace != "a"]
    large = waiting("large", priority=3, cores=cores)
    found = queue([*others, large], ROOM)
    assert found.blocked[0].waiting is large
    assert found._replace(blocked=found.blocked[1:]) == queue(others, ROOM)


@given(PODS)
def test_every_pod_that_fits_an_empty_budget_is_admitted_in_the_end(pods: list[WaitingPod]) -> None:
    """One running pod ends in each round."""
    left = [pod for pod in pods if queue([pod], ROOM).admissible]
    running: list[WaitingPod] = []
    for _ in range(3 * len(pods)):
        found = queue(left, after(Queue(tuple(running), ()), ROOM))
        left = [each.waiting for each in found.blocked]
        running = [*running, *found.admissible][1:]
    assert not left
