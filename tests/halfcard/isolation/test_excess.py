"""What processes use beyond their rows: measured less said, and never more than both looks at the account allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.isolation.excess import excesses
from halfcard.isolation.shared_files import AccountCard, AccountRow, Excess, process_name

ONE, OTHER = (process_name(pid, 77) << 16 | 1 for pid in (7, 8))
NONE: Final = Excess(0, 0)


def card(rows: Mapping[int, tuple[int, int]]) -> AccountCard:
    return AccountCard(0, 0, {at: AccountRow(owner, said) for at, (owner, said) in rows.items()})


CASES: Final = {
    "as said": ({0: (ONE, 100)}, 100, {0: (ONE, 100)}, [NONE]),
    "a context more": ({0: (ONE, 100)}, 400, {0: (ONE, 100)}, [Excess(ONE, 300)]),
    "less than said": ({0: (ONE, 100)}, 50, {0: (ONE, 100)}, [NONE]),
    "given back during the measurement": ({0: (ONE, 400)}, 400, {0: (ONE, 100)}, [NONE]),
    "taken during the measurement": ({0: (ONE, 100)}, 400, {0: (ONE, 400)}, [NONE]),
    "a row that is new": ({}, 400, {0: (ONE, 100)}, [NONE]),
    "a row of another process since": ({0: (OTHER, 100)}, 400, {0: (ONE, 100)}, [NONE]),
    "a row after an empty one": ({1: (ONE, 100)}, 400, {1: (ONE, 100)}, [NONE, Excess(ONE, 300)]),
    "no rows": ({}, 400, {}, []),
}


@pytest.mark.parametrize(("before", "measured", "after", "expected"), CASES.values(), ids=CASES.keys())
def test_the_excess_is_what_was_measured_and_not_said(
    before: Mapping[int, tuple[int, int]],
    measured: int,
    after: Mapping[int, tuple[int, int]],
    expected: list[Excess],
) -> None:
    assert list(excesses(card(before), {process_name(7, 77): measured}, card(after))) == expected


amounts = st.integers(0, 2**40)
rows = st.dictionaries(st.integers(0, 5), st.tuples(st.sampled_from([ONE, OTHER]), amounts), max_size=4)


@given(rows, st.dictionaries(st.sampled_from([process_name(7, 77), process_name(8, 77)]), amounts), rows)
def test_what_is_counted_is_never_more_than_said_or_measured(
    before: Mapping[int, tuple[int, int]], measured: Mapping[int, int], after: Mapping[int, tuple[int, int]]
) -> None:
    found = excesses(card(before), measured, card(after))
    for at, excess in enumerate(found):
        if excess.owner:
            assert after[at][1] + excess.bytes <= measured[excess.owner >> 16]
            assert before[at][1] + excess.bytes <= measured[excess.owner >> 16]
