"""The agent's benchmark end to end. What it measures is not judged here, only that it does."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench import agent
from bench.figures import WIDTH


def test_the_benchmark_prints_a_table_and_writes_it_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "agent.json"
    assert agent.main(["--quick", "--json", str(file)]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= WIDTH
    parts = json.loads(file.read_text())["parts"]
    assert len(parts) == 9
    figures = [figure for part in parts for figure in part["figures"]]
    assert all(figure["name"] and math.isfinite(figure["value"]) for figure in figures)
