"""What a context needs: what was measured of a process and is nothing that it says it allocated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.isolation.context_size import MOST, context_size
from halfcard.isolation.shared_files import NO_LIMIT, AccountCard, AccountRow, process_name

MIB: Final = 1 << 20
NAMES: Final = [process_name(pid, 77) for pid in (7, 8)]


def row(name: int, mib: int, contexts: int = 1, context_mib: int = 0) -> AccountRow:
    return AccountRow(name << 16 | 1, mib * MIB, contexts=contexts, context_bytes=context_mib * MIB)


def card(*rows: AccountRow) -> AccountCard:
    return AccountCard(0, 0, dict(enumerate(rows)))


@pytest.mark.parametrize(
    ("rows", "measured_mib", "expected_mib"),
    [
        pytest.param([row(NAMES[0], 100)], [400], 300, id="nothing was taken for it"),
        pytest.param([row(NAMES[0], 350, 1, 250)], [400], 300, id="less than it needs was taken for it"),
        pytest.param([row(NAMES[0], 600, 1, 500)], [400], 300, id="more than it needs was taken for it"),
        pytest.param([row(NAMES[0], 600, 2, 500)], [700], 300, id="two contexts"),
        pytest.param([row(NAMES[0], 100), row(NAMES[1], 0)], [900, 300], 300, id="the other has modules as well"),
        pytest.param([row(NAMES[0], 100, 0)], [400], None, id="no context yet"),
        pytest.param([row(NAMES[0], 500)], [400], None, id="says more than it has"),
        pytest.param([row(NAMES[0], 0)], [5000], None, id="has memory that it does not say"),
        pytest.param([row(NAMES[0], 0)], [], None, id="not measured"),
        pytest.param([], [], None, id="nobody"),
    ],
)
def test_the_size_is_the_least_that_one_process_shows(
    rows: list[AccountRow], measured_mib: list[int], expected_mib: int | None
) -> None:
    measured = {name: mib * MIB for name, mib in zip(NAMES, measured_mib, strict=False)}
    expected = None if expected_mib is None else expected_mib * MIB
    assert context_size(card(*rows), measured, card(*rows)) == expected


def test_a_process_that_changed_its_row_during_the_measurement_shows_nothing() -> None:
    before, after = row(NAMES[0], 100), row(NAMES[0], 200)
    assert context_size(card(before), {NAMES[0]: 400 * MIB}, card(after)) is None
    assert context_size(card(), {NAMES[0]: 400 * MIB}, card(after)) is None


number = st.integers(0, NO_LIMIT)


@given(number, number, number, st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2 * MOST)))
def test_a_hostile_process_never_makes_it_greater_than_an_honest_one_shows(
    said: int, contexts: int, taken: int, measured: Mapping[int, int]
) -> None:
    honest = row(NAMES[0], 0)
    hostile = AccountRow(NAMES[1] << 16 | 1, said, contexts=contexts, context_bytes=taken)
    alone = context_size(card(honest), measured, card(honest))
    both = context_size(card(honest, hostile), measured, card(honest, hostile))
    assert alone is None or (both is not None and 0 <= both <= alone)
