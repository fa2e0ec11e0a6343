"""Scores that are encoded again equal new ones after any changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.packing.placement import WORST, encode_scores
from extender.scheduler_api import wire
from extender.scheduler_api.score_cache import ScoreCache

RANKS = [WORST, -9.0, -8.5, -4.0, -1.0, 0.0]
LETTERS = [chr(at) for at in range(len(RANKS))]
Change = dict[int, str]

letters = st.sampled_from(LETTERS)
beginnings = st.lists(letters, min_size=1, max_size=25)
changes = st.lists(st.dictionaries(st.integers(0, 24), letters, max_size=3), max_size=8)


@pytest.fixture(autouse=True, scope="module")
def _few_are_many() -> object:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(wire, "_MANY", 4)
        yield


def scores(answer: bytes) -> dict[str, int]:
    return {each["Host"]: each["Score"] for each in json.loads(answer)}


@given(beginnings, changes)
def test_an_updated_answer_equals_a_new_one(begin: list[str], later: list[Change]) -> None:
    now = {f"n{at:02}": letter for at, letter in enumerate(begin)}
    names = [*now]
    cache = ScoreCache(names, now.__getitem__)
    for change in [{}, *later]:
        changed = {names[at]: letter for at, letter in change.items() if at < len(names)}
        now |= changed
        new = wire.prioritize_answer(names, encode_scores(RANKS, "".join(now.values()), names))
        cache.change({*changed, "stranger"})
        assert scores(cache.answer(RANKS)) == scores(new)


def test_a_name_that_looks_like_two_entries_is_encoded_as_one() -> None:
    names = ["n1", 'n2","Score":9},{"Host":"n3', "n4"]
    now = dict(zip(names, LETTERS[1:4], strict=True))
    cache = ScoreCache(names, now.__getitem__)
    for name, letter in (("n1", LETTERS[1]), ("n1", LETTERS[5])):
        now[name] = letter
        new = wire.prioritize_answer(names, encode_scores(RANKS, "".join(now.values()), names))
        cache.change({name})
        assert scores(cache.answer(RANKS)) == scores(new)
