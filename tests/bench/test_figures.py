from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.figures import WIDTH, Figure, Part, table, write_json


@pytest.mark.parametrize(
    ("value", "at_most", "verdict"), [(1.79, 1.8, "met"), (1.8, 1.8, "met"), (1.81, 1.8, "MISSED"), (99.0, None, "")]
)
def test_a_target_is_met_up_to_its_value(value: float, at_most: float | None, verdict: str) -> None:
    assert Figure("ratio", value, "x", at_most).verdict == verdict


def test_a_line_shows_value_target_and_verdict_in_the_width_of_a_terminal() -> None:
    line = Figure("time per container, the largest against the smallest", 123456.789, "ms", 1000.0).line()
    assert line.split()[-6:] == ["123,456.79", "ms", "<=", "1000", "ms", "MISSED"]
    assert len(line) <= WIDTH


def test_the_json_holds_every_number_with_its_target(tmp_path: Path) -> None:
    file = tmp_path / "new" / "bench.json"
    write_json([Part("title", [Figure("ratio", 2.0, "x", 1.8), Figure("p50", 0.5, "ms")], ["a note"])], file)
    (part,) = json.loads(file.read_text())["parts"]
    assert part == {
        "title": "title",
        "figures": [
            {"name": "ratio", "value": 2.0, "unit": "x", "at_most": 1.8, "met": False},
            {"name": "p50", "value": 0.5, "unit": "ms"},
        ],
        "notes": ["a note"],
    }


def test_the_table_shows_each_part_above_its_figures() -> None:
    text = table([Part("first", [Figure("a", 1, "s")]), Part("second", [Figure("b", 2, "s")])])
    assert [line.split()[0] for line in text.splitlines() if line] == ["first", "a", "second", "b"]
