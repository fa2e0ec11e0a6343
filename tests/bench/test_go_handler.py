from __future__ import annotations

import time
from pathlib import Path

import pytest

from bench import go_handler
from bench.busy import busy_loops
from bench.go_handler import A_SECOND, ALIKE, UNLIKE, Comparison, Setting, Turn, compare, figures_of
from bench.load import Load
from bench.servers import cpu_s, floor, webhook
from devcluster.build import toolchain


def test_the_webhook_is_compared_with_another_server_at_the_pace_of_the_setting(tmp_path: Path) -> None:
    with webhook(tmp_path) as judging, floor(tmp_path) as constant:
        began = time.monotonic()
        part = compare(judging, constant, Comparison(rounds=1, paced_calls=5), [Setting(paced=True, loops=0)])
    assert time.monotonic() - began >= 8 * 4 / A_SECOND  # two servers, two rounds, two kinds of pods
    assert len(part.figures) == 6 and all(each.value > 0 for each in part.figures)


@pytest.mark.parametrize(
    ("pods", "paced", "target"), [(UNLIKE, False, 0.8), (UNLIKE, True, 0.9), (ALIKE, False, 0.6), (ALIKE, True, 0.75)]
)
def test_the_medians_of_the_ratios_are_compared_with_the_targets(pods: str, target: float, *, paced: bool) -> None:
    turns = [Turn(Load([0.002], cpu), Load([0.001], 2.0)) for cpu in (1.0, 2.0, 9.0)]
    cpu, of_1000, p99 = figures_of(pods, Setting(paced, loops=2), turns)
    assert (cpu.value, cpu.at_most) == (1.0, target) and "beside 2 busy loops" in cpu.name
    assert (of_1000.value, p99.value, p99.verdict) == (2000.0, 2.0, "MISSED")


def test_without_go_the_part_says_so_and_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(toolchain, "_USUAL_PLACES", ())
    part = go_handler.measure(tmp_path, Comparison())
    assert (part.figures, len(part.notes)) == ((), 1)
    assert "`python -m devcluster.build pod-handler` builds it" in part.notes[0]


def test_busy_loops_end_with_their_block() -> None:
    with busy_loops(1) as (pid,):
        while cpu_s(pid) < 0.01:
            pass
    assert not Path(f"/proc/{pid}").exists()
