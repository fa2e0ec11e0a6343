"""The programs end to end, with a few hundred calls. What they measure is not judged here, only that they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import __main__ as bench
from bench import fuzz
from bench.connection import Answer
from bench.malformed import case

from .printed import parts_of


def test_the_benchmark_prints_a_table_and_writes_it_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parts = parts_of(bench.main, "--quick", folder=tmp_path, capfd=capfd)
    assert len(parts) == 5
    assert all(figure["value"] > 0 for part in parts for figure in part["figures"] if "growth" not in figure["name"])


@pytest.mark.parametrize("of", ["webhook", "extender"])
def test_the_fuzzer_finds_no_violation_in_a_few_hundred_requests(of: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--of", of, "--count", "300", "--seed", "11"]) == 0
    assert f"300 malformed requests to the {of}" in capfd.readouterr().out


def test_the_fuzzed_process_has_the_memory_limit_of_the_chart() -> None:
    assert fuzz.memory_limit("admission") == 512 * 2**20


@pytest.mark.parametrize(("status", "violations"), [(200, 0), (400, 0), (500, 1), (503, 1)])
def test_only_a_5xx_is_a_violation_and_the_report_says_how_to_repeat_it(status: int, violations: int) -> None:
    tally = fuzz.Tally()
    fuzz.count_answer(Answer(status, b"why", 0.01), case(1, 42), fuzz.Plan(1, 0, 100), number=42, tally=tally)
    assert len(tally.violations) == violations
    assert all("--seed 1 --first 42 --count 1" in violation for violation in tally.violations)
