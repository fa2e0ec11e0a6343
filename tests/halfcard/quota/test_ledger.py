"""The ledger's decisions, one by one; that they hold together is in `test_ledger_laws`."""

from __future__ import annotations

import pytest

from halfcard.quota.ledger import (
    MOST_OPEN,
    MOST_OPEN_OF_ONE,
    MOST_VALUES,
    Busy,
    Entry,
    Full,
    Ledger,
    LostLeadership,
    Shortage,
    StoredPods,
    commit,
    over,
    release,
    reserve,
    take_over,
    used,
)

READY = commit(Ledger({"cores": 100, "cards": 2}), 0, StoredPods({}))


def entry(namespace: str = "team", **cost: int) -> Entry:
    return Entry(namespace, "pod", cost)


def test_a_reservation_counts_until_it_is_committed_and_then_once() -> None:
    reserved = reserve(READY, "u", entry(cores=30))
    assert used(reserved) == {"cores": 30}
    committed = commit(reserved, 0, StoredPods({"u": entry(cores=30)}))
    assert (committed.open, committed.committed, used(committed)) == ({}, {"cores": 30}, {"cores": 30})
    assert used(commit(committed, 0, StoredPods({}))) == {}


def test_what_is_missing_is_told_of_everything_that_is_short() -> None:
    full = reserve(READY, "u", entry(cores=80, cards=2))
    with pytest.raises(Full) as refused:
        reserve(full, "v", entry(cores=30, cards=1, memory=7))
    assert refused.value.shortages == (Shortage("cores", 30, 80, 100), Shortage("cards", 1, 2, 2))
    assert [each.missing for each in refused.value.shortages] == [10, 1]


def test_who_asks_for_nothing_of_what_is_over_may_come() -> None:
    lowered = reserve(READY, "u", entry(cores=80))._replace(hard={"cores": 50, "cards": 2})
    assert over(lowered) == {"cores": 30}
    assert "v" in reserve(lowered, "v", entry(cards=1)).open
    with pytest.raises(Full):
        reserve(lowered, "v", entry(cores=1))


def test_what_is_allowed_to_each_person_is_counted_for_each() -> None:
    each = READY._replace(hard={"cores": 100, "cores per user": 50})
    full = reserve(each, "u", Entry("team", "pod", {"cores": 40, "cores per user=alice": 40}))
    with pytest.raises(Full) as refused:
        reserve(full, "v", Entry("team", "pod", {"cores": 20, "cores per user=alice": 20}))
    assert refused.value.shortages == (Shortage("cores per user=alice", 20, 40, 50),)
    both = reserve(full, "v", Entry("team", "pod", {"cores": 50, "cores per user=bob": 50}))
    assert over(both._replace(hard={"cores per user": 45})) == {"cores per user=bob": 5}


def test_the_ledger_of_a_quota_that_was_made_anew_begins_anew() -> None:
    assert take_over(READY, READY.of).is_ready
    another = take_over(READY, "another")
    assert (another.is_ready, another.of, another.epoch) == (False, "another", READY.epoch + 1)


def test_a_pod_that_has_its_reservation_is_not_charged_again() -> None:
    reserved = reserve(READY, "u", entry(cores=90))
    assert reserve(reserved, "u", entry(cores=90)) is reserved


def test_before_anybody_has_counted_nothing_is_granted() -> None:
    with pytest.raises(Busy, match="nobody has counted"):
        reserve(Ledger({"cores": 100}), "u", entry(cores=1))


def test_one_namespace_cannot_use_up_a_shared_budget_with_reservations() -> None:
    open_of_one = {f"u{at}": entry(cores=0) for at in range(MOST_OPEN_OF_ONE)}
    crowded = READY._replace(open=open_of_one)
    with pytest.raises(Busy, match=f"{MOST_OPEN_OF_ONE} pods of namespace team"):
        reserve(crowded, "v", entry(cores=1))
    assert "v" in reserve(crowded, "v", entry("other", cores=1)).open
    everywhere = {f"u{at}": entry(f"team-{at}") for at in range(MOST_OPEN)}
    with pytest.raises(Busy, match=f"{MOST_OPEN} pods"):
        reserve(READY._replace(open=everywhere), "v", entry(cores=1))


def test_who_writes_labels_cannot_make_a_ledger_too_large_to_be_written() -> None:
    committed = {f"{key} per user={at}": 1 for at in range(MOST_VALUES) for key in ("cores", "shares")}
    crowded = READY._replace(committed=committed)
    with pytest.raises(Busy, match=f"{MOST_VALUES} values of its label"):
        reserve(crowded, "v", Entry("team", "pod", {"cores per user=new": 1}))
    assert "v" in reserve(crowded, "v", Entry("team", "pod", {"cores per user=7": 1})).open
    nearly = READY._replace(committed={f"cores per user={at}": 1 for at in range(MOST_VALUES - 1)})
    last = reserve(nearly, "v", Entry("team", "pod", {"cores per user=": 1}))
    with pytest.raises(Busy):
        reserve(last, "w", Entry("team", "pod", {"cores per user=new": 1}))


def test_released_amounts_may_be_reserved_again() -> None:
    assert release(reserve(READY, "u", entry(cores=100)), "u") == READY


def test_a_pod_that_came_and_went_unseen_holds_nothing_any_more() -> None:
    reserved = reserve(reserve(READY, "u", entry(cores=30)), "v", entry(cores=30))
    assert commit(reserved, 0, StoredPods({}, ended={"u", "w"})).open.keys() == {"v"}


def test_an_earlier_leader_cannot_commit() -> None:
    with pytest.raises(LostLeadership):
        commit(take_over(READY), 0, StoredPods({}))


def test_who_came_past_the_ledger_is_late_while_there_is_too_little() -> None:
    live = {"u": entry(cores=60), "past": entry(cores=60)}
    full = commit(reserve(READY, "u", entry(cores=60)), 0, StoredPods(live, strangers={"u", "past"}))
    assert full.late == {"past"}
    assert commit(full, 0, StoredPods(live)).late == {"past"}
    assert commit(full, 0, StoredPods({"past": entry(cores=60)})).late == frozenset()
