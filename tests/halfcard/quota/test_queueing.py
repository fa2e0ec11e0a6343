"""The law of the queue: no pod passes another that waits for the same quota; single cases are in `queue.story`."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from halfcard.quota.ledger import Entry, Ledger, reserve, used
from halfcard.quota.queueing import WaitingPod, in_order, queue

ROOM: Final = {"a": Ledger({"cores": 100}, is_ready=True), "b": Ledger({"cores": 50}, is_ready=True)}


def waiting(name: str, cores: int = 30, *, priority: int = 0, at: str = "10", of: str = "a") -> WaitingPod:
    entries = {ledger: Entry("team", name, {"cores": cores}) for ledger in of}
    return WaitingPod(f"uid-{name}", "team", name, priority, f"2026-01-01T00:00:{at}Z", entries)


PODS: Final = st.lists(
    st.builds(
        waiting,
        st.text("abcdefgh", min_size=3, max_size=3),
        st.integers(1, 60),
        priority=st.integers(0, 2),
        at=st.integers(10, 59).map(str),
        of=st.sampled_from(["a", "b", "ab"]),
    ),
    unique_by=lambda each: each.pod,
    max_size=8,
)


@given(PODS)
def test_admitted_pods_fit_and_come_before_all_that_wait_for_the_same(pods: list[WaitingPod]) -> None:
    found = queue(pods, ROOM)
    for name, ledger in ROOM.items():
        here = [each for each in in_order(pods) if name in each.entries]
        opens = [each for each in here if each in found.admissible]
        assert here[: len(opens)] == opens
        for each in opens:
            ledger = reserve(ledger, each.uid, each.entries[name])  # noqa: PLW2901
        assert used(ledger)["cores"] <= ledger.hard["cores"]
    assert found.admissible or found.first_blocked or not pods
