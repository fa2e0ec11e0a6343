"""Who of those that wait comes next: nobody passes one that waits for the same quota."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from halfcard.quota.ledger import Entry, Ledger, reserve, used
from halfcard.quota.queueing import Queue, WaitingPod, in_order, queue

ROOM: Final = {"a": Ledger({"cores": 100}, is_ready=True), "b": Ledger({"cores": 50}, is_ready=True)}


def waiting(name: str, cores: int = 30, *, priority: int = 0, at: str = "10", of: str = "a") -> WaitingPod:
    entries = {ledger: Entry("team", name, {"cores": cores}) for ledger in of}
    return WaitingPod(f"uid-{name}", "team", name, priority, f"2026-01-01T00:00:{at}Z", entries)


def opened(found: Queue) -> list[str]:
    return [each.pod for each in found.openable]


def test_as_many_as_there_is_room_for_are_let_in_the_oldest_first() -> None:
    found = queue([waiting(name, at=f"{at}") for name, at in (("d", 40), ("b", 20), ("c", 30), ("a", 11))], ROOM)
    assert opened(found) == ["a", "b", "c"]
    (first,) = found.first
    assert (first.waiting.pod, first.ledger, first.shortages[0].missing) == ("d", "a", 20)


def test_priority_goes_before_age() -> None:
    assert opened(queue([waiting("old", 60), waiting("urgent", 60, priority=5, at="50")], ROOM)) == ["urgent"]


def test_a_small_one_does_not_pass_a_large_one_that_waits_for_the_same() -> None:
    found = queue([waiting("large", 101), waiting("small", 1, at="20"), waiting("other", 1, at="30", of="b")], ROOM)
    assert opened(found) == ["other"]


def test_who_waits_for_several_holds_his_place_in_all_of_them() -> None:
    found = queue([waiting("both", 60, of="ab"), waiting("behind", 10, at="20", of="a")], ROOM)
    assert opened(found) == []
    assert [(each.waiting.pod, each.ledger) for each in found.first] == [("both", "b")]


def test_a_ledger_that_nobody_knows_or_has_counted_lets_nobody_in() -> None:
    assert opened(queue([waiting("p", of="x")], ROOM)) == []
    assert queue([waiting("p")], {"a": Ledger({})}).first[0].shortages == ()


def test_a_pod_that_has_its_reservation_already_is_admitted() -> None:
    full = reserve(ROOM["a"], "uid-p", Entry("team", "p", {"cores": 100}))
    assert opened(queue([waiting("p", 100)], {"a": full})) == ["p"]


def test_without_any_quota_nobody_waits() -> None:
    assert opened(queue([waiting("p", of="")], {})) == ["p"]


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
def test_who_is_let_in_fits_and_comes_before_all_who_wait_for_the_same(pods: list[WaitingPod]) -> None:
    found = queue(pods, ROOM)
    for name, ledger in ROOM.items():
        here = [each for each in in_order(pods) if name in each.entries]
        opens = [each for each in here if each in found.openable]
        assert here[: len(opens)] == opens
        for each in opens:
            ledger = reserve(ledger, each.uid, each.entries[name])  # noqa: PLW2901
        assert used(ledger)["cores"] <= ledger.hard["cores"]
    assert found.openable or found.first or not pods
