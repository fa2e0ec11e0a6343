"""Claims become what the driver measures, within bounds, and stay as they are where it does not measure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.isolation.core_correction import LEAST, MOST, UNCORRECTED, CoreTimes, Growth, growth
from halfcard.isolation.shared_files import AccountCard, AccountRow

SECOND: float = 1e9
TIMES = st.floats(0, 1e12)


@given(st.lists(st.tuples(TIMES, TIMES), max_size=20))
def test_a_correction_is_within_its_bounds(seconds: list[tuple[float, float]]) -> None:
    times = CoreTimes()
    for shown, claimed in seconds:
        times = times.after(shown, claimed)
        assert LEAST <= times.correction <= MOST


@given(st.floats(0.2, 3.9), st.floats(0.05, 1))
def test_a_lasting_ratio_is_found_within_ten_seconds(ratio: float, claimed: float) -> None:
    times = CoreTimes(SECOND, SECOND)
    for _ in range(10):
        times = times.after(ratio * claimed * SECOND, claimed * SECOND)
    assert times.correction == pytest.approx(1000 * ratio, rel=0.1)


@pytest.mark.parametrize(
    ("shown", "claimed"),
    [(0, SECOND), (SECOND, 0), (SECOND, 9e6)],
    ids=["a driver that does not measure", "an idle container", "hardly used"],
)
def test_without_both_times_nothing_is_corrected(shown: float, claimed: float) -> None:
    assert CoreTimes().after(shown, claimed).correction == UNCORRECTED


def test_only_what_rows_gained_counts() -> None:
    before = AccountCard(0, 0, {0: AccountRow(1, gpu_ns=50, throttled_ns=5), 1: AccountRow(2, gpu_ns=70)})
    after = AccountCard(0, 0, {0: AccountRow(1, gpu_ns=80, throttled_ns=9), 1: AccountRow(3, gpu_ns=7)})
    assert growth(before, after) == Growth(37, 4)
    assert growth(after, after) == growth(after, AccountCard(0, 0, {})) == Growth(0, 0)
    assert growth(after, AccountCard(0, 0, {0: AccountRow(1, gpu_ns=1)})) == Growth(0, 0)
