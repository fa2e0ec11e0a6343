"""The device ids that are advertised for a resource: a table, and laws that protect running pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.device_ids import LINGERS_S, ListedIds, ids_to_publish, is_ours

counts = st.integers(0, 60)
our_ids = st.integers(0, 80).map("hc-{}".format)
held_ids = st.frozensets(our_ids | st.sampled_from(["tencent.com/vcuda-core-7", "GPU-1::0"]), max_size=40)


@pytest.mark.parametrize(
    ("held", "total", "expected"),
    [
        ((), 0, ()),
        ((), 3, ("hc-0", "hc-1", "hc-2")),
        (("hc-1",), 3, ("hc-0", "hc-1", "hc-2")),
        (("hc-10", "hc-9"), 3, ("hc-0", "hc-9", "hc-10")),
        (("hc-7", "hc-8", "hc-9"), 2, ("hc-7", "hc-8", "hc-9")),
        (("hc-7",), 0, ("hc-7",)),
        (("theirs-0",), 2, ("hc-0", "theirs-0")),
        (("hc-1", "hc-1"), 2, ("hc-0", "hc-1")),
    ],
)
def test_used_ids_are_filled_up_with_the_smallest_free_ones(
    held: tuple[str, ...], total: int, expected: tuple[str, ...]
) -> None:
    assert ids_to_publish(held, total) == expected


@pytest.mark.parametrize(
    ("device_id", "ours"),
    [
        ("hc-0", True),
        ("hc-17", True),
        ("hc-", False),
        ("hc-x", False),
        ("hc-1 ", False),
        ("hc-1\n", False),
        ("hc-٣", False),
        ("hc-01", False),
        ("xhc-1", False),
        ("tencent.com/vcuda-core-1", False),
        ("GPU-fef8089b::1", False),
    ],
)
def test_our_ids_are_distinguished_from_those_of_other_plugins(device_id: str, ours: bool) -> None:  # noqa: FBT001
    assert is_ours(device_id) is ours


@given(held_ids, counts)
def test_no_used_id_is_withdrawn_and_no_free_one_exceeds_the_total(held: frozenset[str], total: int) -> None:
    found = ids_to_publish(held, total)
    assert held <= set(found)
    assert len(found) == len(set(found)) == max(len(held), total)
    assert all(is_ours(each) for each in found if each not in held)


@given(held_ids, counts, st.data())
def test_the_listed_ids_do_not_change_when_a_pod_takes_some(
    held: frozenset[str], total: int, data: st.DataObject
) -> None:
    found = ids_to_publish(held, total)
    taken = data.draw(st.frozensets(st.sampled_from(found))) if found else frozenset()
    assert ids_to_publish(held | taken, total) == found


@given(held_ids, counts, counts)
def test_a_larger_total_only_adds(held: frozenset[str], total: int, more: int) -> None:
    assert set(ids_to_publish(held, total)) <= set(ids_to_publish(held, total + more))


looks = st.lists(st.tuples(held_ids, counts, st.floats(0, LINGERS_S)), min_size=1, max_size=12)


@given(looks)
def test_a_withdrawn_id_stays_listed_until_kubelet_cannot_be_allocating_it(
    series: list[tuple[frozenset[str], int, float]],
) -> None:
    listed, now, last_offered = ListedIds(), 0.0, dict[str, float]()
    for held, total, passed in series:
        now += passed
        last_offered |= dict.fromkeys(listed.offered, now)
        listed = listed.next(held, total, now)
        assert listed.offered == ids_to_publish(held, total)
        expected = {each for each, at in last_offered.items() if now < at + LINGERS_S} - set(listed.offered)
        assert set(listed.withdrawn) == expected


def test_a_withdrawn_id_is_removed_after_its_time_and_can_return_at_once() -> None:
    less = ListedIds().next((), 3, 0.0).next((), 1, 100.0)
    assert less == ListedIds(("hc-0",), {"hc-1": 100.0 + LINGERS_S, "hc-2": 100.0 + LINGERS_S})
    assert less.next((), 2, 101.0) == ListedIds(("hc-0", "hc-1"), {"hc-2": 100.0 + LINGERS_S})
    assert less.next((), 1, 100.0 + LINGERS_S) == ListedIds(("hc-0",), {})
