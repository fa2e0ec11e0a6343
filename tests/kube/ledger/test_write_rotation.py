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
def test_after_each_write_exactly_one_writer_has_its_turn(writers: list[str], data: st.DataObject) -> None:
    last = data.draw(st.sampled_from(writers))
    waits = [knowing(me, [*writers, last]).wait_s(100.0) for me in writers]
    assert waits.count(0.0) == 1
    assert len(set(waits)) == len(writers)


@given(WRITERS)
def test_each_writer_has_one_turn_in_a_round(writers: list[str]) -> None:
    last, order = writers[0], []
    for _ in writers:
        last = next(me for me in writers if knowing(me, [*writers, last]).wait_s(100.0) == 0)
        order.append(last)
    assert sorted(order) == sorted(writers)


@given(WRITERS)
def test_the_last_writer_comes_last(writers: list[str]) -> None:
    me = writers[0]
    waits = {each: knowing(each, [*writers, me]).wait_s(100.0) for each in writers}
    assert max(waits.values()) == waits[me]


def test_a_single_writer_never_waits() -> None:
    turns = knowing("a", ["a", "a"])
    assert turns.wait_s(100.0) == 0


def test_no_writer_waits_before_the_first_write() -> None:
    assert WriteRotation("a").wait_s(5.0) == 0


def test_a_writer_that_does_not_use_its_turn_is_skipped() -> None:
    turns = knowing("c", ["a", "b", "c", "a"])
    waits = turns.wait_s(100.0)
    assert waits > 0 and turns.wait_s(100.0 + waits / 2) > 0
    assert turns.wait_s(100.0 + waits) == 0


def test_a_writer_that_has_gone_has_no_turn() -> None:
    turns = knowing("c", ["b"])
    turns.record_write("a", 102.0)
    assert turns.wait_s(102.0) == 0


def test_slower_writes_make_longer_turns() -> None:
    quick, slow = (knowing("c", ["a", "b", "c", "a"]) for _ in range(2))
    for _ in range(10):
        quick.record_duration(0.001)
        slow.record_duration(0.05)
    assert slow.wait_s(100.0) > 2 * quick.wait_s(100.0)
    slow.record_duration(60.0)
    assert slow.wait_s(100.0) < 1


def test_no_wait_is_longer_than_the_time_after_which_a_writer_has_gone() -> None:
    turns = knowing("z", [f"a{number:02}" for number in range(50)] + ["z"])
    turns.record_duration(60.0)
    assert turns.wait_s(100.0) == 1.0 and turns.wait_s(101.0) == 0
