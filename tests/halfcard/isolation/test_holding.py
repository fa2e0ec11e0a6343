"""What the agent records is read by people as it was written, and nothing else is believed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.isolation.holding import DRIVER, LIBRARY, Holding, in_words, read_holdings, write_holdings

HOLDINGS = st.builds(Holding, st.sampled_from([(), (LIBRARY,), (DRIVER,), (LIBRARY, DRIVER)]), st.text(max_size=20))


@given(st.dictionaries(st.text(max_size=9), HOLDINGS, max_size=3))
def test_what_is_written_is_read(found: dict[str, Holding]) -> None:
    assert read_holdings(write_holdings(found)) == found


@pytest.mark.parametrize("text", ["", "{", "[]", '{"main":1}', '{"main":{"by":"library"}}', "\ud800", "[" * 5000])
def test_what_cannot_be_read_says_nothing(text: str) -> None:
    assert read_holdings(text) == {}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "not held to its share, as far as its node's agent has recorded"),
        (Holding((LIBRARY,)), "held to its share by the isolation libraries"),
        (Holding((LIBRARY, DRIVER)), "to its memory by the driver too"),
        (Holding((), "cuInit was answered 999"), "not held to its share: cuInit was answered 999"),
        (Holding(("magic",)), "not held to its share"),
    ],
)
def test_people_read_a_sentence(found: Holding | None, words: str) -> None:
    assert words in in_words(found)
