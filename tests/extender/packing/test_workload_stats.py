from __future__ import annotations

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.packing.workload_mix import USUAL, PodClass, WorkloadMix
from extender.packing.workload_mix_text import MAX_CHARS, read_mix, write_mix
from extender.packing.workload_stats import WorkloadStats
from halfcard import names

from .policies.rooms import mixes

COMMON: Final = PodClass(1000, 2048, 1, 37)
LATER: Final = PodClass(1000, 2048, 1, 73)


def part(mix: WorkloadMix, kind: PodClass) -> float:
    return dict(mix.kinds).get(kind, 0.0) / sum(count for _, count in mix.kinds)


def test_a_new_cluster_expects_the_usual_mix() -> None:
    assert {kind for kind, _ in WorkloadStats().mix().kinds} == {kind for kind, _ in USUAL.kinds}


def test_observed_pods_soon_outweigh_the_usual_mix() -> None:
    stats = WorkloadStats()
    for _ in range(200):
        stats.count(COMMON)
    assert part(stats.mix(), COMMON) > 0.75


def test_pods_that_no_longer_come_lose_their_weight() -> None:
    stats = WorkloadStats()
    for _ in range(1000):
        stats.count(COMMON)
    for _ in range(10_000):
        stats.count(LATER)
    assert part(stats.mix(), LATER) > 0.95
    assert 0 < part(stats.mix(), COMMON) < 0.05


def test_only_the_most_frequent_classes_are_kept() -> None:
    stats = WorkloadStats()
    for number in range(3000):
        stats.count(COMMON)
        stats.count(PodClass(number, 0, 1, 50))
    mix = stats.mix()
    assert len(mix.kinds) <= 200
    assert part(mix, COMMON) > 0.5


def test_statistics_survive_a_restart_and_keep_decaying() -> None:
    before = WorkloadStats()
    for number in range(5000):
        before.count(PodClass(1000 * (number % 7), 0, 1, 10 + number % 11))
    after = WorkloadStats()
    after.load(before.notes())
    for stats in (before, after):
        stats.count(COMMON)
    expected = {kind: pytest.approx(count, abs=0.02) for kind, count in before.mix().kinds}
    assert dict(after.mix().kinds) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[",
        "{}",
        "[]",
        "7",
        "null",
        "[[1,2,3]]",
        '[["x",0,0,1,50,0,""]]',
        "[" * 5000,
        "9" * 6000,
        "[1e999]",
    ],
)
def test_unreadable_notes_change_nothing(text: str) -> None:
    stats = WorkloadStats()
    stats.load({names.LEARNT_MIX: text})
    assert stats.mix() == WorkloadStats().mix()


ROW: Final = [1.5, 4000, 8192, 1, 50, 0, "t4"]


@pytest.mark.parametrize(
    ("at", "value"),
    [(0, 0), (0, -1), (0, 1e300), (1, -1), (1, 2**60), (3, 5000), (4, 101), (5, -1), (6, None), (2, 1.5)],
)
def test_an_impossible_row_is_skipped(at: int, value: object) -> None:
    odd = [*ROW[:at], value, *ROW[at + 1 :]]
    mix = read_mix(json.dumps([odd, ROW]))
    assert mix == WorkloadMix(((PodClass(4000, 8192, 1, 50, ("t4",)), 1.5),))


@given(mixes)
def test_a_mix_is_decoded_as_it_was_encoded(mix: WorkloadMix) -> None:
    assert read_mix(write_mix(mix)) == WorkloadMix(tuple(sorted(mix.kinds, key=lambda item: (-item[1], item[0]))))


@given(
    st.text(max_size=200) | st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_any_text_can_be_decoded(text: str) -> None:
    read_mix(text)


def test_a_long_mix_is_cut_to_the_size_of_an_annotation() -> None:
    kinds = [PodClass(number, 10**9, 1, 50, ("m" * 60,)) for number in range(500)]
    text = write_mix(WorkloadMix(tuple((kind, 1000.0 - number) for number, kind in enumerate(kinds))))
    mix = read_mix(text)
    assert len(text) <= MAX_CHARS
    assert mix is not None and 100 < len(mix.kinds) < 500
    assert [kind for kind, _ in mix.kinds] == kinds[: len(mix.kinds)]


def test_a_class_with_a_very_long_list_of_models_is_not_encoded() -> None:
    mix = WorkloadMix(((PodClass(1, 1, 1, 50, ("m" * 5000,)), 2.0), (COMMON, 1.0)))
    assert read_mix(write_mix(mix)) == WorkloadMix(((COMMON, 1.0),))
