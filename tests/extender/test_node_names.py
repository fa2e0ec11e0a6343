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


def node_names(names: Iterable[str], gone: Iterable[str] = ()) -> NodeNames:
    known = NodeNames()
    for name in {*names, *gone}:
        known.add(name)
    for name in gone:
        known.remove(name)
    return known


def written(names: list[str] | None) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(names))


@given(entered=NAMES, gone=NAMES, asked=st.lists(TEXTS, max_size=12))
def test_a_list_decodes_to_the_same_names_whichever_are_known(
    entered: list[str], gone: list[str], asked: list[str]
) -> None:
    left = {*entered} - {*gone}
    assert node_names(entered, gone).read(written(asked)) == (asked, bool(left) and left >= {*asked})


@given(entered=NAMES, asked=NAMES)
def test_a_known_name_is_read_as_the_same_object_every_time(entered: list[str], asked: list[str]) -> None:
    known = node_names(entered)
    known.read(written(asked))  # may be the first call that names most of them
    first, again = (known.read(written(names))[0] or [] for names in (entered, entered[::-1]))
    assert [*map(id, again)] == [*map(id, first[::-1])]
    assert [*map(id, map(known.interned, entered))] == [*map(id, first)]


def test_names_are_stored_in_the_order_of_their_first_use() -> None:
    known = node_names(["n1", "n2", "n3", "n4"])
    known.read(written(["n4"]))
    known.read(written(["n3", "n1", "n9", "n2"]))
    known.read(written(["n1", "n2", "n3", "n4"]))
    assert [*known.names()] == ["n3", "n1", "n2", "n4"]


@pytest.mark.parametrize("entered", [[], ["n1"]])
def test_null_reads_as_none_and_anything_else_is_refused(entered: list[str]) -> None:
    known = node_names(entered)
    assert known.read(written(None))[0] is None
    for wrong in (b"7", b'{"n1":1}', b'["n1",7]', b'"n1"'):
        with pytest.raises(msgspec.ValidationError):
            known.read(msgspec.Raw(wrong))


@given(entered=NAMES, gone=NAMES, asked=NAMES)
def test_the_others_are_the_nodes_that_the_call_does_not_name(
    entered: list[str], gone: list[str], asked: list[str]
) -> None:
    known, left = node_names(entered, gone), {*entered} - {*gone}
    expected = left - {*asked} if left >= {*asked} else None
    names, all_known = known.read(written(asked))
    assert names is not None
    assert known.others(names, known=all_known) == expected
    assert known.others(asked, known=False) == expected


def test_a_call_that_names_a_node_twice_gets_no_set_of_the_others() -> None:
    assert node_names(["n1", "n2", "n3"]).others(["n1", "n1"], known=True) is None
