"""What a budget counts, kept while pods come, change and go, is what it would count of those that are there."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from halfcard.quota.ledger import Entry, sum_of
from quota.usage_index import TOP, CountedPod, UsageIndex, rank

UIDS: Final = [f"u{number}" for number in range(30)]
COSTS: Final = st.dictionaries(
    st.sampled_from(["cores", "memory", "cards", "cores per user=a"]), st.integers(0, 3), max_size=3
)
ENTRIES: Final = st.builds(Entry, st.sampled_from(["team", "other"]), st.sampled_from(["p", "q", "r"]), COSTS)
CHANGES: Final = st.lists(
    st.tuples(st.sampled_from(UIDS), st.none() | st.builds(CountedPod, ENTRIES, st.booleans())), max_size=80
)


@given(CHANGES)
def test_the_index_always_equals_a_new_count_of_the_remaining_pods(
    changes: list[tuple[str, CountedPod | None]],
) -> None:
    holding, left = UsageIndex(), dict[str, CountedPod]()
    for uid, held in changes:
        holding.put(uid, held)
        if held is None:
            left.pop(uid, None)
        else:
            left[uid] = held
    entries = {uid: held.entry for uid, held in left.items()}
    assert holding.entries == entries
    assert holding.bound == {uid for uid, held in left.items() if held.is_bound}
    assert holding.total == +sum_of(entry.charge for entry in entries.values()) and all(holding.total.values())
    assert holding.top().pods == len(left)
    assert [*map(rank, holding.top().entries)] == sorted(map(rank, entries.values()))[:TOP]
    for namespace in ("team", "other"):
        inside = [entry for entry in entries.values() if entry.namespace == namespace]
        assert holding.tally(namespace).total == +sum_of(entry.charge for entry in inside)
        assert [*map(rank, holding.top(namespace).entries)] == sorted(map(rank, inside))[:TOP]


@given(CHANGES, CHANGES)
def test_arrived_pods_are_known_until_they_are_cleared_or_gone(
    before: list[tuple[str, CountedPod | None]], after: list[tuple[str, CountedPod | None]]
) -> None:
    holding = UsageIndex()
    for uid, held in before:
        holding.put(uid, held)
    holding.clear_arrived(holding.arrived)
    assert not holding.arrived
    known = set(holding.entries)
    for uid, held in after:
        holding.put(uid, held)
    gone = {uid for uid, held in after if held is None}
    assert holding.entries.keys() - known <= holding.arrived <= holding.entries.keys() - (known - gone)


def test_only_changed_pods_are_marked_and_once() -> None:
    holding = UsageIndex()
    assert set(holding.take_marked(["u", "v"])) == {"u", "v"}
    holding.put("u", CountedPod(Entry("team", "p", {"cores": 1})))
    holding.mark(["w"])
    assert [*holding.take_marked()] == ["w"]
    assert [*holding.take_marked()] == []


def test_marking_all_includes_pods_that_are_gone() -> None:
    holding = UsageIndex()
    holding.take_marked()
    holding.put("gone", CountedPod(Entry("team", "p", {"cores": 1})))
    holding.mark_all()
    assert set(holding.take_marked(["there"])) == {"gone", "there"}
