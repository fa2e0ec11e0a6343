"""The benchmark of a scrape end to end on a small node. What it measures is not judged here, only that it does."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench import agent_scrape
from bench.figures import WIDTH


def test_the_benchmark_prints_a_table_and_writes_it_as_json(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "agent_scrape.json"
    assert agent_scrape.main(["--quick", "--containers", "10", "--json", str(file)]) == 0
    assert max(len(line) for line in capfd.readouterr().out.splitlines()) <= WIDTH
    (part,) = json.loads(file.read_text())["parts"]
    assert "10 containers" in part["title"]
    assert all(figure["name"] and math.isfinite(figure["value"]) for figure in part["figures"])
