"""Who writes next: by what each of several replicas has seen of the others, none of whom asks another."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kube.ledger.write_rotation import WriteRotation

WRITERS = st.lists(st.text("abcdef", min_size=1, max_size=4), min_size=1, max_size=6, unique=True)


def knowing(me: str, wrote: Sequence[str]) -> WriteRotation:
    """Who has seen all of these write, the last of them at 100 s."""
    found = WriteRotation(me)
    for who in wrote:
        found.record_write(who, 100.0)
    return found


@given(WRITERS, st.data())
def test_after_each_write_it_is_the_turn_of_exactly_one_of_those_who_write(
    writers: list[str], data: st.DataObject
) -> None:
    last = data.draw(st.sampled_from(writers))
    waits = [knowing(me, [*writers, last]).wait_s(100.0) for me in writers]
    assert waits.count(0.0) == 1
    assert len(set(waits)) == len(writers)


@given(WRITERS)
def test_all_come_once_in_each_round(writers: list[str]) -> None:
    last, order = writers[0], []
    for _ in writers:
        last = next(me for me in writers if knowing(me, [*writers, last]).wait_s(100.0) == 0)
        order.append(last)
    assert sorted(order) == sorted(writers)


@given(WRITERS)
def test_whoever_has_just_written_comes_last(writers: list[str]) -> None:
    me = writers[0]
    waits = {each: knowing(each, [*writers, me]).wait_s(100.0) for each in writers}
    assert max(waits.values()) == waits[me]


def test_whoever_writes_alone_never_waits() -> None:
    turns = knowing("a", ["a", "a"])
    assert turns.wait_s(100.0) == 0


def test_nobody_waits_before_anybody_has_written() -> None:
    assert WriteRotation("a").wait_s(5.0) == 0


def test_one_who_does_not_take_its_turn_is_skipped_after_a_while() -> None:
    turns = knowing("c", ["a", "b", "c", "a"])
    waits = turns.wait_s(100.0)
    assert waits > 0 and turns.wait_s(100.0 + waits / 2) > 0
    assert turns.wait_s(100.0 + waits) == 0


def test_one_who_has_gone_is_not_waited_for() -> None:
    turns = knowing("c", ["b"])
    turns.record_write("a", 102.0)
    assert turns.wait_s(102.0) == 0


def test_where_writes_take_longer_others_are_given_longer() -> None:
    quick, slow = (knowing("c", ["a", "b", "c", "a"]) for _ in range(2))
    for _ in range(10):
        quick.record_duration(0.001)
        slow.record_duration(0.05)
    assert slow.wait_s(100.0) > 2 * quick.wait_s(100.0)
    slow.record_duration(60.0)
    assert slow.wait_s(100.0) < 1


def test_however_many_write_and_however_slowly_nobody_waits_longer_than_for_one_who_has_gone() -> None:
    turns = knowing("z", [f"a{number:02}" for number in range(50)] + ["z"])
    turns.record_duration(60.0)
    assert turns.wait_s(100.0) == 1.0 and turns.wait_s(101.0) == 0
