"""The agent's benchmark end to end. What it measures is not judged here, only that it does."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bench import agent

from .printed import parts_of


def test_the_benchmark_prints_a_table_and_writes_it_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parts = parts_of(agent.main, "--quick", folder=tmp_path, capfd=capfd)
    assert len(parts) == 9
    figures = [figure for part in parts for figure in part["figures"]]
    assert all(figure["name"] and math.isfinite(figure["value"]) for figure in figures)
