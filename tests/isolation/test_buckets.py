"""Laws of the bucket of GPU time, and of the estimates that are taken from it."""

from __future__ import annotations

import ctypes
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfcard.isolation.shared_files import NO_LIMIT

from .build import SANITIZED, build

MS: Final = 1_000_000
START: Final = 10_000 * MS
CREDIT_NS: Final = 100 * MS
MOST_WAIT_NS: Final = 3_600_000 * MS
LEAST_NS: Final = 1000
ROUNDING_NS: Final = 2


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    made = tmp_path_factory.mktemp("bucket") / "bucket.so"
    found = ctypes.CDLL(str(build(made, ["bucket.c", "kernels.c"], "-fsanitize=undefined", *SANITIZED[1:])))
    number = ctypes.c_uint64
    found.wait_ns.argtypes, found.wait_ns.restype = [number, number], number
    found.take.argtypes, found.take.restype = [number] * 4, number
    found.estimate.argtypes, found.estimate.restype = [ctypes.POINTER(number), ctypes.c_int], number
    return found


@given(
    rate=st.integers(1, 1000),
    takes=st.lists(st.tuples(st.integers(0, 200 * MS), st.integers(LEAST_NS, 50 * MS)), min_size=1, max_size=40),
)
def test_in_any_time_no_more_is_taken_than_the_rate_gives_and_one_launch(
    library: ctypes.CDLL, rate: int, takes: list[tuple[int, int]]
) -> None:
    bucket, now, taken = 0, START, 0
    for pause, gpu_ns in takes:
        now += pause + library.wait_ns(bucket, now + pause)
        assert taken <= (now - START + CREDIT_NS) * rate / 1000 + ROUNDING_NS * len(takes)
        bucket = library.take(bucket, now, gpu_ns, rate)
        taken += gpu_ns


@given(rate=st.integers(1, 1000), gpu_ns=st.integers(LEAST_NS, 500 * MS))
def test_what_is_taken_from_an_empty_bucket_is_waited_for_by_its_rate(
    library: ctypes.CDLL, rate: int, gpu_ns: int
) -> None:
    waits = library.wait_ns(library.take(START, START, gpu_ns, rate), START)
    assert waits == gpu_ns * 1000 // rate


@given(*[st.integers(0, NO_LIMIT)] * 4)
def test_no_number_in_the_file_makes_a_launch_wait_for_more_than_an_hour(
    library: ctypes.CDLL, bucket: int, now: int, gpu_ns: int, rate: int
) -> None:
    assert library.wait_ns(bucket, now) <= MOST_WAIT_NS
    library.take(bucket, now, gpu_ns, rate)


@given(st.lists(st.integers(LEAST_NS, 500 * MS), min_size=1, max_size=40))
def test_an_estimate_is_the_low_fifth_of_the_last_16_samples(library: ctypes.CDLL, samples: list[int]) -> None:
    last = sorted(samples[-16:])
    array = (ctypes.c_uint64 * len(samples))(*samples)
    assert library.estimate(array, len(samples)) == last[len(last) // 5]
