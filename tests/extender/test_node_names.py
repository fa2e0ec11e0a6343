"""Names of nodes: read as a library would read them, and found without a question for each."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.node_names import NodeNames

TEXTS = st.sampled_from(["n1", "n2", "n3", "", 'a"b', "back\\slash", "ж💥", "\n", "n1,n2"]) | st.text(max_size=3)
NAMES = st.lists(TEXTS, unique=True, max_size=8)


def roll_of(names: Iterable[str], gone: Iterable[str] = ()) -> NodeNames:
    roll = NodeNames()
    for name in {*names, *gone}:
        roll.enter(name)
    for name in gone:
        roll.strike(name)
    return roll


def written(names: list[str] | None) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(names))


@given(entered=NAMES, gone=NAMES, asked=st.lists(TEXTS, max_size=12))
def test_whatever_is_known_a_list_is_read_as_it_is_written(
    entered: list[str], gone: list[str], asked: list[str]
) -> None:
    left = {*entered} - {*gone}
    assert roll_of(entered, gone).read(written(asked)) == (asked, bool(left) and left >= {*asked})


@given(entered=NAMES, asked=NAMES)
def test_a_name_that_is_known_is_read_as_the_same_text_every_time(entered: list[str], asked: list[str]) -> None:
    roll = roll_of(entered)
    roll.read(written(asked))  # which may be the first that names most of them
    first, again = (roll.read(written(names))[0] or [] for names in (entered, entered[::-1]))
    assert [*map(id, again)] == [*map(id, first[::-1])]
    assert [*map(id, map(roll.own, entered))] == [*map(id, first)]


def test_names_are_kept_in_the_order_in_which_they_were_named_first() -> None:
    roll = roll_of(["n1", "n2", "n3", "n4"])
    roll.read(written(["n4"]))
    roll.read(written(["n3", "n1", "n9", "n2"]))
    roll.read(written(["n1", "n2", "n3", "n4"]))
    assert [*roll.names()] == ["n3", "n1", "n2", "n4"]


@pytest.mark.parametrize("entered", [[], ["n1"]])
def test_null_is_no_list_and_anything_else_is_refused(entered: list[str]) -> None:
    roll = roll_of(entered)
    assert roll.read(written(None))[0] is None
    for wrong in (b"7", b'{"n1":1}', b'["n1",7]', b'"n1"'):
        with pytest.raises(msgspec.ValidationError):
            roll.read(msgspec.Raw(wrong))


@given(entered=NAMES, gone=NAMES, asked=NAMES)
def test_the_others_are_those_that_are_not_named(entered: list[str], gone: list[str], asked: list[str]) -> None:
    roll, left = roll_of(entered, gone), {*entered} - {*gone}
    expected = left - {*asked} if left >= {*asked} else None
    names, known = roll.read(written(asked))
    assert names is not None
    assert roll.others(names, known=known) == expected
    assert roll.others(asked, known=False) == expected


def test_who_names_a_node_twice_is_not_told_of_the_others() -> None:
    assert roll_of(["n1", "n2", "n3"]).others(["n1", "n1"], known=True) is None
